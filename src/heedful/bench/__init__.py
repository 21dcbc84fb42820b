"""Speed and memory of training, translation and preparation, in heedful and other toolkits."""
