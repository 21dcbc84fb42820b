"""Ways to cut text: learned subwords, byte-pair codes, lists of words."""
