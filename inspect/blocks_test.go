package inspect

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"

	"github.com/oribi-db/oribi/schema"
)

// view returns the view of a page.
func view(t *testing.T, s *server, path string) map[string]any {
	t.Helper()
	r := get(s, path, asJSON)
	text := body(t, r)
	must.Equal(t, r.StatusCode, http.StatusOK, path, r.Status, text)
	return decode(t, text).(map[string]any)["view"].(map[string]any)
}

// TestAnnotatedBytesAreThoseOfTheBlock visits all blocks of a table, and all their parts. The bytes
// on the pages of the parts that are stored as they are must be the bytes of the block.
func TestAnnotatedBytesAreThoseOfTheBlock(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store)
	kinds := map[string]int{}
	for i, name := range []string{hostileNames[0], "."} {
		table := must.Get(store.Table(name))(t)
		for _, m := range table.RowSets()[:1] {
			for _, id := range m.Blocks(nil) {
				path := fmt.Sprintf("/block?table=%s&rowset=%d&block=%d", table.Properties().ID, m.ID, id)
				v := view(t, s, path)
				kinds[v["kind"].(string)]++
				parts := []string{"&part=header", "&part=footer"}
				for _, c := range v["cblocks"].([]any) {
					parts = append(parts, fmt.Sprintf("&part=%s", c.(map[string]any)["offset"]))
				}
				if v["kind"] == "key directory" {
					parts = []string{""}
				}
				for _, part := range parts {
					compareBytes(t, s, store, id, path+part)
				}
			}
		}
		if i == 1 && kinds["row file"]+kinds["key directory"] != 2 {
			t.Errorf("%v", kinds)
		}
	}
	for _, kind := range []string{"column", "key index", "bloom filter", "redo", "undo", "row file", "key directory"} {
		if kinds[kind] == 0 {
			t.Errorf("no page of a %s: %v", kind, kinds)
		}
	}
}

// compareBytes compares the lines of all pages of a part with the block.
func compareBytes(t *testing.T, s *server, store *oribi.Store, id block.ID, path string) {
	t.Helper()
	src := must.Get(store.OpenBlock(id))(t)
	defer src.Close()
	whole := make([]byte, src.Size())
	if _, err := src.ReadAt(whole, 0); err != nil && src.Size() > 0 {
		t.Log(err)
	}
	shown, unpacked := int64(0), false
	var size string
	for page := 0; ; page++ {
		part := view(t, s, fmt.Sprintf("%s&line=%d", path, page))["part"].(map[string]any)
		size = fmt.Sprint(part["size"])
		for _, l := range part["lines"].([]any) {
			line := l.(map[string]any)
			if strings.HasPrefix(fmt.Sprint(line["meaning"]), "unpacked, offsets") {
				unpacked = true
			}
			hex, ok := line["hex"].(string)
			if !ok || unpacked && fmt.Sprint(line["meaning"]) != "crc" {
				continue
			}
			var off int64
			fmt.Sscan(fmt.Sprint(line["offset"]), &off)
			n := int64(len(hex)+1) / 3
			if shown += n; off+n > int64(len(whole)) || fmt.Sprintf("% x", whole[off:off+n]) != hex {
				t.Fatalf("%s: bytes %s at %d differ from the block", path, hex, off)
			}
		}
		all := part["lines_shown"].(map[string]any)
		if fmt.Sprint(all["last"]) == fmt.Sprint(all["total"]) {
			break
		}
	}
	must.Equal(t, size, fmt.Sprint(shown), path, shown)
}

// A damaged cblock has a page that describes the damage; the others are shown.
func TestDamageIsShownWhereItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	store := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
	sc := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "v", Type: schema.String, Encoding: schema.Plain, Compression: schema.NoCompression}}, 1))(t)
	table := must.Get(store.CreateTable("t", sc))(t)
	commit(t, store, func(b *oribi.Batch) { // the needle is far from the end of its file, which an open reads
		b.Insert(table, oribi.Row{"k": int64(0), "v": "needle-in-a-haystack-that-is-long-enough-for-a-zone-map"})
		for i := range 1000 {
			b.Insert(table, oribi.Row{"k": int64(i + 1), "v": fmt.Sprintf("hay %060d", i)})
		}
	})
	must.Do(t, table.Flush(t.Context()))
	must.Do(t, store.Close())
	files := must.Get(filepath.Glob(filepath.Join(dir, "data", "*.data")))(t)
	flipped := 0
	for _, name := range files {
		data := must.Get(os.ReadFile(name))(t)
		if i := bytes.Index(data, []byte("haystack-that-is-long-enough")); i >= 0 {
			data[i] ^= 1
			must.Do(t, os.WriteFile(name, data, 0o600))
			flipped++
		}
	}
	must.Equal(t, flipped, 1, "files have the cell")
	store = must.Get(oribi.Open(dir, &oribi.Options{Follow: true}))(t)
	defer store.Close()
	s := testServer(store)
	table = must.Get(store.Table("t"))(t)
	m := table.RowSets()[0]
	path := fmt.Sprintf("/block?table=t&rowset=%d&block=%d", m.ID, m.Columns[1].Block)
	v := view(t, s, path)
	damaged := v["cblocks"].([]any)[0].(map[string]any)
	must.Contain(t, fmt.Sprint(damaged["problem"]), "crc", damaged)
	part := view(t, s, fmt.Sprintf("%s&part=%s", path, damaged["offset"]))["part"].(map[string]any)
	must.Contain(t, fmt.Sprint(part), "damaged: ")
	if html := body(t, get(s, path)); strings.Contains(html, dir) || !strings.Contains(html, "crc") {
		t.Error("the damage is not in the HTML, or the directory is")
	}
}

// The measured false-positive rate comes from asking the filter about many probes. With so many
// bits per key, almost no answer is wrong.
func TestBloomFilterIsMeasured(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store)
	for _, name := range []string{hostileNames[0], "."} {
		table := must.Get(store.Table(name))(t)
		m := table.RowSets()[0]
		v := must.Get(s.measureBloom(t.Context(), table.Schema(), m))(t)
		if v.Probes != probedKeys*probesByKey || v.Measured > 0.01 || v.Set == 0 || v.Set > v.Bits ||
			float64(v.Wrong)/float64(v.Probes)-v.Measured > 1e-6 {
			t.Errorf("%+v", v)
		}
		keys, done := must.Get2(s.openKeys(table.Schema(), m))(t)
		defer done()
		first := must.Get(keys(0))(t)
		last := must.Get(keys(batch.Ordinal(m.Rows - 1)))(t)
		must.Equal(t, first, m.MinKey)
		must.Equal(t, last, m.MaxKey)
	}
}
