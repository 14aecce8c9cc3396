package inspect

import (
	"context"
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// Limits of requests.
const (
	maxURLBytes  = 64 << 10 // of path and query
	maxPageBytes = 1 << 20  // of a page, HTML or JSON
	maxRunning   = 8        // requests at a time; others wait
	maxWaiting   = 2 * time.Second
	maxTime      = 10 * time.Second // of one page
	maxRefresh   = 5 * time.Second  // of the Refresh of a follower before it
)

// Handler returns a handler that serves pages about a store. See the package's documentation for
// who may use it. The handler is for GET and HEAD requests of paths below Prefix.
func Handler(store *oribi.Store, opts ...Option) http.Handler {
	s := &server{store: store, o: newOptions(opts), now: time.Now, running: make(chan struct{}, maxRunning)}
	s.guard = newGuard(&s.o)
	s.templates = s.parse()
	s.samples = newSampler(s)
	return s
}

// server is one handler.
type server struct {
	store     *oribi.Store
	o         options
	now       func() time.Time
	guard     guard
	templates map[string]*template.Template // by file name
	running   chan struct{}                 // has an element for each request that runs
	samples   *sampler
	columns   columnSizes

	refreshed struct {
		sync.Mutex
		at  time.Time // when the follower was refreshed last
		err error     // of that
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if p := s.guard.check(w, r); p != nil {
		s.fail(w, r, p)
		return
	} else if w.Header().Get("Location") != "" {
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	name, ok := s.local(r.URL.Path)
	if !ok {
		s.fail(w, r, notFound("There is no such page."))
		return
	}
	if dir, file := path.Split(name); dir == "/static/" {
		s.static(w, r, file)
		return
	}
	p := pages[name]
	if p == nil {
		s.fail(w, r, notFound("There is no such page."))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxTime)
	defer cancel()
	if !s.enter(ctx) {
		w.Header().Set("Retry-After", "1")
		s.fail(w, r, &problem{status: http.StatusServiceUnavailable,
			text: "Too many pages are being made at the moment.", hint: "Try again in a second."})
		return
	}
	defer s.leave()
	s.serve(ctx, w, r, p)
}

// local returns a path without the prefix.
func (s *server) local(name string) (string, bool) {
	rest := name[min(len(name), len(s.o.prefix)):]
	if name[:len(name)-len(rest)] != s.o.prefix {
		return "", false
	}
	if rest == "" {
		return "/", true
	}
	return rest, rest[0] == '/'
}

// enter waits until fewer than maxRunning requests run, for a while.
func (s *server) enter(ctx context.Context) bool {
	select {
	case s.running <- struct{}{}:
		return true
	default:
	}
	wait := time.NewTimer(maxWaiting)
	defer wait.Stop()
	select {
	case s.running <- struct{}{}:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	return false
}

func (s *server) leave() { <-s.running }

// refresh moves a follower to the newest state of the store. If that fails, pages show the state
// that it has, and why.
func (s *server) refresh(ctx context.Context) error {
	f := &s.refreshed
	f.Lock()
	defer f.Unlock()
	if now := s.now(); now.Sub(f.at) > refreshEvery || now.Before(f.at) {
		ctx, cancel := context.WithTimeout(ctx, maxRefresh)
		defer cancel()
		f.err, f.at = s.store.Refresh(ctx), now
	}
	return f.err
}

// refreshEvery is how old the state of a follower may be.
const refreshEvery = 100 * time.Millisecond

// static serves a file of the style or a script.
func (s *server) static(w http.ResponseWriter, r *http.Request, name string) {
	data, err := fs.ReadFile(staticFiles, "static/"+name)
	kind := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml"}[path.Ext(name)]
	if err != nil || kind == "" {
		s.fail(w, r, notFound("There is no such file."))
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "private, max-age=3600")
	w.Write(data)
}
