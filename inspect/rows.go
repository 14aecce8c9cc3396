package inspect

import "context"

var rowsPage = page{pattern: "/rows", name: "Rows", template: "rows.html", table: true,
	build: func(context.Context, *server, *query) (any, error) { return nil, notFound("There is no such page.") }}
