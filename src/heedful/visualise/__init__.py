"""Arrays and tokens in, figures and stand-alone pages out."""
