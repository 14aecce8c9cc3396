package inspect

import "context"

var rowPage = page{pattern: "/row", name: "One row", template: "row.html", table: true,
	build: func(context.Context, *server, *query) (any, error) { return nil, notFound("There is no such page.") }}
