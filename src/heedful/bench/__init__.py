"""Speed and memory of training, translating and preparing, here and in other toolkits."""
