package inspect

import (
	"net/url"
	"strconv"

	"github.com/oribi-db/oribi/internal/celltext"
)

// address returns the URL of a page.
func (s *server) address(pattern string, values url.Values) string {
	u := url.URL{Path: s.o.prefix + pattern, RawQuery: values.Encode()}
	return u.String()
}

// title returns what the browser shows of a page.
func (s *server) title(p *page, q *query) string {
	title := p.name
	if q.Table != nil {
		title += " · " + celltext.Printable(q.Table.Name())
	}
	return title + " · " + celltext.Printable(s.o.name)
}

// crumbs returns the links to the pages above a page (store, table, rowset, block), and the page
// itself.
func (s *server) crumbs(p *page, q *query) []crumb {
	list := []crumb{{Name: celltext.Printable(s.o.name), URL: s.address("/", nil), Current: p == &storePage}}
	if q.Table == nil {
		if p != &storePage {
			list = append(list, crumb{Name: p.name, URL: s.address(p.pattern, nil), Current: true})
		}
		return list
	}
	values := url.Values{"table": {q.Table.Name()}}
	list = append(list, crumb{Name: "Table " + celltext.Printable(cut(q.Table.Name(), 60)),
		URL: s.address("/table", values), Current: p == &tablePage})
	for _, part := range []struct {
		param, name string
		page        *page
	}{{"rowset", "Rowset ", &rowsetPage}, {"block", "Block ", &blockPage}} {
		if id, err := q.Number(part.param); err == nil {
			values.Set(part.param, strconv.FormatUint(id, 10))
			list = append(list, crumb{Name: part.name + strconv.FormatUint(id, 10),
				URL: s.address(part.page.pattern, values), Current: p == part.page})
		}
	}
	if !list[len(list)-1].Current {
		list = append(list, crumb{Name: p.name, URL: s.address(p.pattern, q.With("refresh", "")), Current: true})
	}
	return list
}

// tabs returns the pages of a table.
func (s *server) tabs(p *page, q *query) []crumb {
	if q.Table == nil {
		return nil
	}
	var list []crumb
	for _, t := range []*page{&tablePage, &rowsPage, &rowPage, &timelinePage} {
		list = append(list, crumb{Name: t.name,
			URL: s.address(t.pattern, url.Values{"table": {q.Table.Name()}}), Current: p == t})
	}
	return list
}

// refreshes returns the choices of how often the page is loaded again.
func (s *server) refreshes(p *page, q *query) []crumb {
	var list []crumb
	for _, every := range []struct{ name, seconds string }{{"off", ""}, {"2 s", "2"}, {"10 s", "10"}, {"1 min", "60"}} {
		current := every.seconds == strconv.Itoa(q.Refresh) || every.seconds == "" && q.Refresh == 0
		list = append(list, crumb{Name: every.name,
			URL: s.address(p.pattern, q.With("refresh", every.seconds)), Current: current})
	}
	return list
}
