package inspect

import "strconv"

// pager is the part of a long list that a page shows.
type pager struct {
	Total int `json:"total"` // elements of the list
	// number of the first that the page shows, from 1; 0 if the list is empty
	First int `json:"first"`
	Last  int `json:"last"` // number of the last, inclusive

	Parts          int    `json:"-"`
	Previous, Next string `json:"-"` // URLs; empty without such a part
}

// pageOf returns the part of a list of n elements, size at a time, that the parameter "page"
// selects, and its half-open interval. A number after the end selects the last part.
func (s *server) pageOf(q *query, n, size int) (pg pager, from, to int) {
	return s.partOf(q, "page", q.Page, n, size)
}

// partOf is pageOf for another parameter, whose value is at.
func (s *server) partOf(q *query, param string, at, n, size int) (pg pager, from, to int) {
	pg = pager{Total: n, Parts: (n + size - 1) / size}
	at = min(at, max(pg.Parts-1, 0))
	from, to = at*size, min((at+1)*size, n)
	if n > 0 {
		pg.First, pg.Last = from+1, to
	}
	if at > 0 {
		pg.Previous = s.address(q.page.pattern, q.With(param, strconv.Itoa(at-1)))
	}
	if at+1 < pg.Parts {
		pg.Next = s.address(q.page.pattern, q.With(param, strconv.Itoa(at+1)))
	}
	return pg, from, to
}
