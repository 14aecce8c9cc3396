package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"encoding/xml"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/maintest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

func TestMain(m *testing.M) { os.Exit(maintest.Run(m)) }

// hostile is text that would do harm if a page, a terminal or a script interpreted it.
const hostile = "</td><script>alert('x')</script>\"'><img src=x onerror=alert(1)>&amp;{{.}}\x1b[31m\u202e\r\n\t//../é"

// hostileNames are names of tables.
var hostileNames = []string{hostile, "..", ".", "a/../b//c", "?table=x&y=z#f", " ", strings.Repeat("<\"", 128), "café"}

// openStore opens an empty store in memory.
func openStore(t testing.TB) *oribi.Store {
	t.Helper()
	store := must.Get(oribi.Open("/secret-path",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(7355733817208557568), Manual: true,
			RowSetBytes: 1 << 14, History: oribi.HistoryForever}))(t)
	t.Cleanup(func() { store.Close() })
	return store
}

// commit commits a write batch that fill makes.
func commit(t testing.TB, store *oribi.Store, fill func(b *oribi.Batch)) {
	t.Helper()
	b := store.NewBatch()
	fill(b)
	must.Get(b.Commit(t.Context()))(t)
}

// fillStore makes tables with all that pages show: several rowsets, redos, undos, deleted rows, a
// key of several columns, columns that were added and dropped, and hostile names and cells.
func fillStore(t testing.TB, store *oribi.Store) {
	t.Helper()
	ctx := t.Context()
	columns := must.Get(schema.New([]schema.Column{
		{Name: "k", Type: schema.String}, {Name: "n", Type: schema.Int32},
		{Name: hostile, Type: schema.String, Nullable: true, Comment: hostile, Default: []byte(hostile)},
		{Name: "bin", Type: schema.Binary, Nullable: true}, {Name: "x", Type: schema.Double, Nullable: true},
		{Name: "d", Type: schema.Date, Nullable: true}, {Name: "gone", Type: schema.Int64, Nullable: true},
		{Name: "flag", Type: schema.Bool},
	}, 2))(t)
	table := must.Get(store.CreateTable(hostileNames[0], columns, oribi.Comment(hostile)))(t)
	for round := range 3 {
		commit(t, store, func(b *oribi.Batch) {
			for i := range 300 {
				b.Upsert(table, oribi.Row{"k": fmt.Sprintf("%s%03d", hostile, (i*7+round*50)%400), "n": int32(round),
					hostile: strings.Repeat("<b>\x00\x07", i%50), "bin": []byte{0xff, 0xfe, byte(i)},
					"x": float64(i) / 3, "d": time.Unix(int64(i)*86400, 0).UTC(), "gone": int64(i), "flag": i%2 == 0})
			}
		})
		must.Do(t, table.Flush(ctx))
	}
	must.Do(t, table.Alter(ctx, oribi.DropColumn("gone"),
		oribi.AddColumn(schema.Column{Name: "new", Type: schema.Int64, Nullable: true})))
	for round := range 2 {
		commit(t, store, func(b *oribi.Batch) {
			for i := range 100 {
				b.Update(table, oribi.Row{"k": fmt.Sprintf("%s%03d", hostile, i*7%400), "n": int32(0),
					hostile: "changed <i>", "bin": bytes.Repeat([]byte{byte(i)}, 60_000*(i%7/6))})
			}
			b.Delete(table, oribi.Row{"k": fmt.Sprintf("%s%03d", hostile, 7*(101+round)%400), "n": int32(0)})
		})
		must.Get(table.FlushDeltas(ctx))(t)
	}
	commit(t, store, func(b *oribi.Batch) { // stays in memory
		b.Upsert(table, oribi.Row{"k": "last", "n": int32(1), "flag": true})
	})
	single := must.Get(schema.New([]schema.Column{{Name: "id", Type: schema.Int64},
		{Name: "v", Type: schema.String, Nullable: true}}, 1))(t)
	for _, name := range hostileNames[1:] {
		other := must.Get(store.CreateTable(name, single, oribi.RowFile(schema.FullRowFile)))(t)
		commit(t, store, func(b *oribi.Batch) {
			for i := range 40 {
				b.Insert(other, oribi.Row{"id": int64(i) - 20, "v": nil})
			}
		})
		must.Do(t, other.Flush(ctx))
	}
}

// testServer returns a handler whose clock stands still.
func testServer(store *oribi.Store, opts ...Option) *server {
	s := Handler(store, opts...).(*server)
	now := time.Date(2026, 11, 28, 12, 0, 0, 123456789, time.UTC)
	s.now = func() time.Time { return now }
	return s
}

// get makes a request for a path of the handler.
func get(h http.Handler, path string, edit ...func(r *http.Request)) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
	r.Header.Set("Accept", "text/html")
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func asJSON(r *http.Request) { r.Header.Set("Accept", "application/json") }

func body(t testing.TB, r *http.Response) string {
	t.Helper()
	b := must.Get(io.ReadAll(r.Body))(t)
	return string(b)
}

// parsed is an HTML page as a parser sees it.
type parsed struct {
	text       string   // of all elements, with blanks between them
	attributes []string // values of all attributes
	links      []string // values of href
}

// parse parses a page and checks that it has nothing inline that the policy of pages forbids.
func parse(t testing.TB, page string) (p parsed) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var text strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			p.text = text.String()
			return p
		}
		must.Do(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			source := false
			for _, a := range e.Attr {
				p.attributes = append(p.attributes, a.Value)
				name := strings.ToLower(a.Name.Local)
				if name == "style" || strings.HasPrefix(name, "on") ||
					strings.HasPrefix(strings.TrimSpace(strings.ToLower(a.Value)), "javascript:") {
					t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
				}
				if source = source || name == "src"; name == "href" {
					p.links = append(p.links, a.Value)
				}
			}
			if name := strings.ToLower(e.Name.Local); name == "style" || name == "script" && !source || name == "img" ||
				name == "iframe" || name == "object" {
				t.Errorf("element <%s>", e.Name.Local)
			}
		case xml.CharData:
			text.Write(e)
			text.WriteByte(' ')
		}
	}
}

// scalars calls use with each scalar of a JSON document and its place.
func scalars(v any, place string, use func(place string, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			scalars(e, place+"."+name, use)
		}
	case []any:
		for i, e := range v {
			scalars(e, fmt.Sprintf("%s[%d]", place, i), use)
		}
	default:
		use(place, v)
	}
}

// decode decodes JSON, numbers as they are written.
func decode(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	must.Do(t, d.Decode(&v), text)
	return v
}
