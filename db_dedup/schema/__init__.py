"""What is ours in the user's database: tables, fixed views, and how they are made, changed and removed."""
