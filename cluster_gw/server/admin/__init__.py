"""The admin API of one worker, one file per noun; any worker of a group may be asked."""
