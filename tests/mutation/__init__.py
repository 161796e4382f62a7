"""Small changes to the durability core, made one at a time: each must be noticed by some test, or be judged to change nothing."""
