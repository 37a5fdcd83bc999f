"""The description of an application in OpenAPI 3.1, made of its routes and annotations; and the page that shows it."""
