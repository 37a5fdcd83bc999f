"""The parts of the shop: `store` and `pages`, which know no route, and a router in each of the others."""
