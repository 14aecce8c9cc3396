package blockmanager

import (
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// Opening meets the damage while it reads the rows, not while it opens Pebble. With -race, the test
// fails if Pebble is closed while a goroutine still reads.
func TestOpenRefusesDamagedTable(t *testing.T) {
	o := testOptions(nil)
	mem, _ := filled(t, o, 40)
	o.FS = mem
	m := openWriter(t, o)
	must.Do(t, m.meta.flush())
	must.Do(t, m.Close())
	names := must.Get(mem.List("/store/meta"))(t)
	tables := 0
	for _, name := range names {
		if filepath.Ext(name) != ".sst" {
			continue
		}
		tables++
		for off := int64(8); off < 40; off++ {
			f := mem.Clone()
			flip(t, f, "/store/meta/"+name, off)
			o.FS = f
			must.Fail(t, must.Err(Open(o)), ErrCorrupt, name, "byte", off)
		}
	}
	if tables == 0 {
		t.Fatal("no table")
	}
}
