"""`python -m parkade import`: settings of uWSGI, NGINX Unit and Gunicorn as those of Parkade. `command` reads a file,
`draft` is what it prints, and each server has a module that understands its file.
"""
