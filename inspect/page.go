package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// page is one page. build returns a view: a struct with JSON tags, which docs/inspect.md documents
// field by field. It is encoded as JSON or rendered by the template, to which it is "." within
// {{define "content"}}.
type page struct {
	pattern  string   // path below the prefix
	name     string   // in the title and, for pages below a table, in the list of them
	template string   // file in templates/
	table    bool     // it needs the parameter "table"
	params   []string // further parameters that it knows
	build    func(ctx context.Context, s *server, q *query) (any, error)
}

// pages are all pages, by pattern.
var pages = map[string]*page{}

func init() {
	for _, p := range []*page{&storePage, &tablePage, &rowsetPage, &blockPage, &rowsPage, &rowPage, &timelinePage} {
		pages[p.pattern] = p
	}
}

// head has the facts about the store and the page that every page shows.
type head struct {
	Store   string  `json:"store"`             // name
	Page    string  `json:"page"`              // name
	Mode    string  `json:"mode"`              // how the store is open: writer, follower, read-only
	Made    string  `json:"made"`              // when the page was made, RFC 3339
	Visible moment  `json:"visible"`           // newest timestamp that it shows
	Warning *string `json:"warning,omitempty"` // why the store is not shown as it is

	Age string `json:"-"` // of the newest timestamp; empty if it is recent
}

// answer is a page as JSON.
type answer struct {
	head
	View any `json:"view"`
}

// document is the data of the layout template.
type document struct {
	head
	Title   string
	Prefix  string
	Crumbs  []crumb
	Tabs    []crumb
	Refresh []crumb // choices of how often the page is loaded again
	View    any
	Problem *problem
}

// crumb is a link of the navigation.
type crumb struct {
	Name, URL string
	Current   bool
}

// serve makes a page.
func (s *server) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, p *page) {
	h := s.head(ctx, p.name)
	s.samples.awake()
	q, err := s.parseQuery(r, p)
	var view any
	if err == nil {
		view, err = p.build(ctx, s, q)
	}
	d := &document{head: h, Prefix: s.o.prefix}
	if q != nil {
		d.Title, d.Crumbs, d.Tabs, d.Refresh = s.title(p, q), s.crumbs(p, q), s.tabs(p, q), s.refreshes(p, q)
	}
	if err != nil {
		s.failOn(d, w, r, s.problemOf(ctx, err))
		return
	}
	var out bytes.Buffer
	if d.View = view; wantsJSON(r) {
		err = encode(&out, answer{h, view})
	} else {
		if q.Refresh > 0 {
			w.Header().Set("Refresh", strconv.Itoa(q.Refresh))
		}
		err = s.templates[p.template].ExecuteTemplate(&limited{&out, maxPageBytes}, "layout.html", d)
	}
	if err != nil {
		s.failOn(d, w, r, s.problemOf(ctx, err))
		return
	}
	send(w, r, http.StatusOK, out.Bytes())
}

func (s *server) head(ctx context.Context, name string) head {
	h := head{Store: s.o.name, Page: name, Mode: "writer"}
	switch {
	case s.store.Follows():
		h.Mode = "follower"
	case s.store.ReadOnly():
		h.Mode = "read-only"
	}
	if err := s.refresh(ctx); err != nil {
		text := "The newest state could not be read: " + s.problemOf(ctx, err).text
		h.Warning = &text
	} else if err := s.store.Poisoned(); err != nil {
		text := "The store accepts no more writes: " + s.clean(err)
		h.Warning = &text
	}
	now, visible := s.now(), s.store.Visible()
	h.Made, h.Visible = now.UTC().Format(time.RFC3339Nano), momentOf(visible)
	if age := now.Sub(visible.Time()); age >= time.Minute && visible > 0 {
		h.Age = ageText(age)
	}
	return h
}

// send writes a page.
func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	kind := "text/html; charset=utf-8"
	if wantsJSON(r) {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

// wantsJSON reports whether a request asks for JSON: HTML is for browsers, which ask for it by
// name.
func wantsJSON(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(accept, ",") {
			switch kind, _, _ := strings.Cut(part, ";"); strings.TrimSpace(kind) {
			case "application/json":
				return true
			case "text/html":
				return false
			}
		}
	}
	return false
}

// encode encodes a view, which v has as a pointer: lists without elements as [], not as null.
func encode(out *bytes.Buffer, v any) error {
	fillLists(reflect.ValueOf(v))
	e := json.NewEncoder(&limited{out, maxPageBytes})
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// fillLists makes lists that are nil empty.
func fillLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			fillLists(v.Elem())
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			fillLists(f)
		}
	case reflect.Slice:
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fillLists(v.Index(i))
		}
	}
}

// limited is a buffer that refuses to grow above a limit.
type limited struct {
	*bytes.Buffer
	limit int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > l.limit {
		return 0, errTooLarge
	}
	return l.Buffer.Write(p)
}

// parse parses the templates: the layout with each page.
func (s *server) parse() map[string]*template.Template {
	layout := template.Must(template.New("").Funcs(s.functions()).ParseFS(templateFiles,
		"templates/layout.html", "templates/parts.html"))
	all := map[string]*template.Template{}
	for _, p := range pages {
		all[p.template] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, "templates/"+p.template))
	}
	all["problem.html"] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, "templates/problem.html"))
	return all
}
