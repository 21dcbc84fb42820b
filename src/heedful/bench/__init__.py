"""Speed and memory of training, translation and preparation, here and in other toolkits."""
