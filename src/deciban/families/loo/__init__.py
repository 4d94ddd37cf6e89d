"""What families with a closed-form leave-one-out share."""
