package inspect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/celltext"
)

// problem is why there is no page: it is shown as one, or as the JSON {"error":"…","hint":"…"}.
type problem struct {
	status int
	text   string // a sentence
	hint   string // what to do; may be empty
	title  string // empty: the name of the status
}

func (p *problem) Error() string { return p.text }

// Title returns the heading of the page.
func (p *problem) Title() string { return cmp.Or(p.title, http.StatusText(p.status)) }

// Text and Hint return the sentences, with all characters visible.
func (p *problem) Text() string { return celltext.Printable(p.text) }
func (p *problem) Hint() string { return celltext.Printable(p.hint) }

// badRequest is the problem of a parameter that is wrong.
func badRequest(format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, text: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *problem {
	return &problem{status: http.StatusNotFound, text: fmt.Sprintf(format, args...), hint: "Begin at the store's page."}
}

// gone is the problem of a rowset or block that existed and does not exist any more.
func gone(format string, args ...any) *problem {
	return &problem{status: http.StatusGone, text: fmt.Sprintf(format, args...),
		hint: "Compactions replace rowsets and their blocks. Begin at the table's page."}
}

var errTooLarge = &problem{status: http.StatusInsufficientStorage, text: "The page would be larger than 1 MiB.",
	hint: "Ask for less: fewer rows, fewer columns, or another part."}

// problemOf returns the problem that an error of a page is.
func (s *server) problemOf(ctx context.Context, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	p := &problem{status: http.StatusInternalServerError, text: s.clean(err)}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		p.status, p.text = http.StatusServiceUnavailable, fmt.Sprintf("The page was not complete after %v.", maxTime)
		p.hint = "Ask for less, or try again when less is going on."
	case errors.Is(err, oribi.ErrClosed):
		p.status, p.text = http.StatusServiceUnavailable, "The store was closed."
	case errors.Is(err, oribi.ErrNoTable), errors.Is(err, oribi.ErrNotFound), errors.Is(err, oribi.ErrNoColumn):
		p.status = http.StatusNotFound
	case errors.Is(err, oribi.ErrTooOld):
		p.status, p.hint = http.StatusGone, "The table's page shows where its history begins."
	case errors.Is(err, oribi.ErrFuture):
		p.status = http.StatusBadRequest
	case errors.Is(err, oribi.ErrCorrupt):
		p.title, p.hint = "Damage", "Run: oribi store verify"
	case errors.Is(err, oribi.ErrLocked):
		p.status, p.hint = http.StatusServiceUnavailable, "Try again."
	}
	return p
}

// unlessFile returns err unless it is about one file: it is damaged, or a compaction has dropped
// it.
func unlessFile(err error) error {
	if errors.Is(err, oribi.ErrCorrupt) || errors.Is(err, oribi.ErrNotFound) || errors.Is(err, oribi.ErrUnsupported) ||
		errors.Is(err, oribi.ErrTooOld) {
		return nil
	}
	return err
}

// clean returns the text of an error without paths of the machine.
func (s *server) clean(err error) string {
	text := err.Error()
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch e := e.(type) {
		case *fs.PathError:
			text = strings.ReplaceAll(text, e.Path, filepath.Base(e.Path))
		case *os.LinkError:
			text = strings.ReplaceAll(strings.ReplaceAll(text, e.Old, filepath.Base(e.Old)), e.New,
				filepath.Base(e.New))
		}
	}
	if dir := s.store.Dir(); strings.ContainsRune(dir, filepath.Separator) {
		text = strings.ReplaceAll(text, dir, s.o.name)
	}
	return text
}

// fail sends a problem of a request that is for no page.
func (s *server) fail(w http.ResponseWriter, r *http.Request, p *problem) {
	s.failOn(&document{head: head{Store: s.o.name}, Prefix: s.o.prefix}, w, r, p)
}

// failOn sends a problem in place of a page, whose links it keeps.
func (s *server) failOn(d *document, w http.ResponseWriter, r *http.Request, p *problem) {
	var out bytes.Buffer
	var err error
	if wantsJSON(r) {
		err = encode(&out, struct {
			Error string `json:"error"`
			Hint  string `json:"hint,omitempty"`
		}{p.Text(), p.Hint()})
	} else {
		d.Title, d.Problem = p.Title(), p
		err = s.templates["problem.html"].ExecuteTemplate(&out, "layout.html", d)
	}
	if err != nil {
		http.Error(w, http.StatusText(p.status), p.status)
		return
	}
	send(w, r, p.status, out.Bytes())
}
