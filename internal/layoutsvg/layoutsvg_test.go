package layoutsvg

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

func set(id uint64, first, last string, size, redo, undo int64) compaction.RowSetInfo {
	return compaction.RowSetInfo{ID: id, MinKey: []byte(first), MaxKey: []byte(last), Rows: 10, LiveRows: 9,
		Bytes: size, RedoBytes: redo, UndoBytes: undo}
}

func small() (compaction.Layout, Options) {
	l := compaction.Layout{Table: "orders", RowSets: []compaction.RowSetInfo{
		set(1, "a", "m", 32<<20, 0, 0), set(2, "a", "z", 12<<20, 3<<20, 0), set(3, "c", "g", 8<<20, 0, 2<<20),
		set(4, "h", "p", 20<<20, 1<<10, 4<<20), set(5, "n", "z", 30<<20, 0, 0), set(6, "q", "q", 1<<10, 0, 0),
		set(7, "r", "t", 4<<20, 0, 0), set(8, "s", "x", 6<<20, 0, 0), set(9, "y", "b", 1, 0, 0)}}
	return l, Options{Key: func(k []byte) string {
		return strconv.Quote(string(k))
	}, Policy: "overlap", Pick: compaction.Overlap{}.Pick(l, 256<<20)}
}

func draw(t *testing.T, l compaction.Layout, o Options) string {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, Write(&out, l, o))
	return out.String()
}

// elements parses a picture and returns how often it has each kind of element with its class, and
// the text of all elements.
func elements(t *testing.T, svg string) (count map[string]int, text string) {
	t.Helper()
	count = map[string]int{}
	var all strings.Builder
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count, all.String()
		}
		must.Do(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			for _, a := range e.Attr {
				if a.Name.Local == "class" {
					name += "." + a.Value
				}
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") ||
					strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
					t.Errorf("<%s %s=%q>", name, a.Name.Local, a.Value)
				}
			}
			count[name]++
		case xml.CharData:
			all.Write(e)
		}
	}
}

// The picture of a small layout is kept; ORIBI_REWRITE=1 replaces it. Look at it in a browser.
func TestPictureOfASmallLayout(t *testing.T) {
	l, o := small()
	got := draw(t, l, o)
	name := filepath.Join("testdata", "small.svg")
	if os.Getenv("ORIBI_REWRITE") != "" {
		must.Do(t, os.WriteFile(name, []byte(got), 0o666))
	}
	want := must.Get(os.ReadFile(name))(t)
	if got != string(want) {
		t.Errorf("%s differs from\n%s", name, got)
	}
	if again := draw(t, l, o); again != got {
		t.Error("two pictures of one layout differ")
	}
	count, text := elements(t, got)
	picks := len(o.Pick.RowSets)
	if count["rect.base"] != 8+1 || count["rect.redo"] != 2+1 || count["rect.undo"] != 2+1 ||
		count["rect.pick"] != picks+1 || count["path.mark"] != picks || picks < 4 {
		t.Errorf("%v, %d picks", count, picks)
	}
	for _, want := range []string{"Table orders", "Next pick of overlap: 4 rowsets (4 rowsets cover one key)",
		`first key "a"`, `last key "z"`, "redo files 3.0 MiB", "9 rowsets"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestLanesHaveNoTwoRowSetsOverOneKey(t *testing.T) {
	l, o := small()
	slices.Reverse(l.RowSets) // any order
	p := newPicture(l, o, top, mostHeight)
	for i, a := range l.RowSets {
		for k, b := range l.RowSets[:i] {
			if p.lanes[i] == p.lanes[k] && string(a.MinKey) <= string(b.MaxKey) &&
				string(b.MinKey) <= string(a.MaxKey) {
				t.Errorf("rowsets %d and %d are in lane %d", a.ID, b.ID, p.lanes[i])
			}
		}
	}
	if p.count != 4 || p.lanes[0] != -1 {
		t.Errorf("%d lanes, %v", p.count, p.lanes)
	}
}

// Names and keys are text, whatever is in them.
func TestPictureEscapesForeignText(t *testing.T) {
	bad := "</text><script>alert(1)</script>&amp;\"'\x00\x1b\xff\u202e\ufffe]]>"
	l := compaction.Layout{Table: bad,
		RowSets: []compaction.RowSetInfo{set(1, "a", "b", 1, 0, 0), set(2, "a", "b", 1, 0, 0)}}
	svg := draw(t, l, Options{Key: func([]byte) string {
		return bad
	}, Policy: bad, Pick: compaction.Choice{RowSets: []uint64{1, 2}, Why: bad}})
	count, text := elements(t, svg)
	if count["script"] > 0 || !strings.Contains(text, "<script>alert(1)") ||
		strings.ContainsAny(text, "\x00\x1b\u202e") {
		t.Errorf("%v\n%s", count, text)
	}
}

func TestPicturesOfExtremeLayouts(t *testing.T) {
	many := compaction.Layout{Table: "many"}
	for id := range uint64(3000) {
		many.RowSets = append(many.RowSets, set(id, "a", "z", 1, 0, 0))
	}
	for name, l := range map[string]compaction.Layout{
		"empty":   {Table: "t"},
		"one key": {RowSets: []compaction.RowSetInfo{set(1, "", "", 0, 0, 0)}},
		"impossible": {RowSets: []compaction.RowSetInfo{set(1, "b", "a", -1, -1, math.MaxInt64),
			set(1, "a", "b", math.MaxInt64, math.MaxInt64, math.MinInt64), set(2, "a", "b", -5, 1, 1)}},
		"many": many,
	} {
		svg := draw(t, l, Options{Policy: "none"})
		count, text := elements(t, svg)
		if !strings.Contains(text, "Next pick of none: none") || name == "many" && count["rect.base"] != 3001 {
			t.Errorf("%s: %v\n%.500s", name, count, text)
		}
	}
}

func TestPictureOfARealLayout(t *testing.T) {
	l := compaction.Layout{Table: "ycsb"}
	for _, line := range corpustest.Lines(t, filepath.Join(corpustest.Dir(t), "data/ycsb-test-rowsets.tsv")) {
		var r compaction.RowSetInfo
		var first, last string
		if n, _ := fmt.Sscanf(line, "%d %s %s", &r.Bytes, &first, &last); n == 3 {
			r.ID, r.MinKey, r.MaxKey, r.Bytes = uint64(len(l.RowSets)), []byte(first), []byte(last), r.Bytes<<20
			l.RowSets = append(l.RowSets, r)
		}
	}
	o := Options{Key: func(k []byte) string {
		return string(k)
	}, Policy: "budgeted", Pick: compaction.Budgeted{}.Pick(l, 32<<20)}
	svg := draw(t, l, o)
	if dir := os.Getenv("ORIBI_PICTURES"); dir != "" { // to look at
		os.WriteFile(filepath.Join(dir, "real.svg"), []byte(svg), 0o666)
	}
	count, _ := elements(t, svg)
	if count["rect.base"] != 6815+1 || count["path.mark"] != len(o.Pick.RowSets) || len(svg) > 3<<20 {
		t.Errorf("%v, %d bytes", count, len(svg))
	}
}

// embed is draw for a picture in a page. Its elements have nothing that a strict policy of a page
// forbids, except links where they are asked for.
func embed(t *testing.T, l compaction.Layout, o Options) string {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, Embed(&out, l, o))
	if text := out.String(); strings.Contains(text, "style") || !strings.HasPrefix(text, `<svg class="layout"`) {
		t.Errorf("%.200s", text)
	}
	return out.String()
}

func TestEmbeddedPictureHasThePartsOfTheFile(t *testing.T) {
	l, o := small()
	file, _ := elements(t, draw(t, l, o))
	svg := embed(t, l, o)
	page, text := elements(t, svg)
	for _, part := range []string{"rect.base", "rect.redo", "rect.undo", "rect.pick", "path.mark", "path.line"} {
		if file[part] != page[part] {
			t.Errorf("%d %s in the file, %d in the page", file[part], part, page[part])
		}
	}
	if page["a"] != 0 || strings.Contains(text, "Table orders") {
		t.Errorf("%v", page)
	}
	o.Link = func(id uint64) string { return fmt.Sprintf("/set?id=%d&x=\"<", id) }
	svg = embed(t, l, o)
	if n := strings.Count(svg, `<a href="/set?id=`); n != 8 || strings.Contains(svg, `x="<`) {
		t.Errorf("%d links", n)
	}
}

// The picture of many rowsets has no element for each, and is small.
func TestEmbeddedPictureOfManyRowSetsIsSmall(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		l := compaction.Layout{Table: "many"}
		for i := range 10_000 {
			first, last := fmt.Sprintf("%06d", 2*i), fmt.Sprintf("%06d", 2*i+1)
			if overlap {
				last = fmt.Sprintf("%06d", 40_000+i)
			}
			l.RowSets = append(l.RowSets, set(uint64(i), first, last, 32<<20, 3<<20, 9<<20))
		}
		o := Options{Pick: compaction.Choice{}, Link: func(uint64) string { return "x" }}
		for i := range 10_000 {
			o.Pick.RowSets = append(o.Pick.RowSets, uint64(i))
		}
		svg := embed(t, l, o)
		if count, _ := elements(t, svg); count["path.base"] != 1 || count["a"] != 0 || len(svg) > 700<<10 {
			t.Errorf("overlap %v: %v, %d bytes", overlap, count, len(svg))
		}
	}
}
