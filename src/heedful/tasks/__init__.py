"""
Tasks other than translation, which is what a run does if no other task acts.

A task is a folder here, with its settings, recipes, text, rules, scores and commands. It is known
elsewhere by one line in `heedful.tasks.registry`, and may import whatever it needs. Nothing below
it imports it: the registry names its modules, and they are loaded where they are used.

::

    task.py        TASK: settings, what fits together, recipes, names of the modules below
    run.py         what a loaded run does differently: `heedful.runs.task`
    text.py        training text from the files that the task learns from
    cli/           `app`, its commands, and `TRAINS`, the words of the one that trains
    quickstart.py  `quickstart`, of `heedful quickstart --task NAME`
"""
