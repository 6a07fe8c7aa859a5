"""The service of one folder: API, broker, dispatcher and worker as processes of one program.

Imports `processes`.
"""
