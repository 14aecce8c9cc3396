package inspect

import "context"

var timelinePage = page{pattern: "/timeline", name: "Timeline", template: "timeline.html",
	build: func(context.Context, *server, *query) (any, error) { return nil, notFound("There is no such page.") }}
