"""Plans in, equal plans out: what is put into another form before the rules read it. One rewrite a file, in the order of `table`."""
