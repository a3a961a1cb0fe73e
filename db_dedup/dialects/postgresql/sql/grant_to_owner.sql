DO {grant}
