package blockmanager

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// golden compares got with testdata/name, or, if ORIBI_REWRITE is set, writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("ORIBI_REWRITE") != "" {
		must.Do(t, os.WriteFile(path, got, 0o644))
		return
	}
	want := must.Get(os.ReadFile(path))(t)
	must.Equal(t, got, want, path)
}

func TestDumpsShowEveryByte(t *testing.T) {
	instance, in := fill16(1), containerID(fill16(10))
	var out bytes.Buffer
	intent := slot{state: slotIntent, root: root{epoch: 2, hash: setHash{7, 8}}, previous: setHash{5, 6}}
	must.Do(t, DumpAnchor(&out, append(intent.encode(instance), make([]byte, slotLen)...)))
	golden(t, "anchor.dump", out.Bytes())

	out.Reset()
	c := containerRow{containerFull, 1 << 30}
	b := blockRow{container: in, off: 8192, length: 5, sum: 3, identity: 4}
	f := formatRow{4096, instance}
	for _, row := range [][2][]byte{
		{blockKey(7), b.value()}, {containerKey(in), c.value()}, {deadKey(in, 4096), numberValue(100)},
		{{kindFormat}, f.value()}, {{kindMark}, numberValue(1025)}, {{kindLogStart}, numberValue(9)},
		{{kindRoot}, root{epoch: 2}.value()}, {userKey([]byte("table")), []byte("row")}, {{'?'}, nil},
		{{kindMark}, []byte("short")},
	} {
		r := parseRow(row[0], row[1])
		must.Do(t, r.Dump(&out))
	}
	golden(t, "metadata.dump", out.Bytes())
	must.Refuse(t, DumpAnchor(&out, nil), "a piece is taken for the whole")
}

func TestReadAnchorReadsOneGoodSlot(t *testing.T) {
	intent := slot{state: slotIntent, root: root{epoch: 2, hash: setHash{7, 8}}, previous: setHash{5, 6}}
	good, none := intent.encode(fill16(1)), make([]byte, slotLen)
	torn := bytes.Clone(good)
	torn[slotEpochOff]++
	for name, test := range map[string]struct {
		data   []byte
		states [2]string
		ok     bool
	}{
		"new":     {append(bytes.Clone(good), none...), [2]string{"intent", "empty"}, true},
		"torn":    {append(bytes.Clone(torn), good...), [2]string{"damaged", "intent"}, true},
		"damaged": {append(bytes.Clone(torn), torn...), [2]string{"damaged", "damaged"}, false},
		"short":   {good, [2]string{}, false},
	} {
		slots, err := ReadAnchor(test.data)
		if got := [2]string{slots[0].State, slots[1].State}; got != test.states || (err == nil) != test.ok {
			t.Errorf("%s: states %q, error %v", name, got, err)
		}
	}
}

func TestReadMetadataReportsRowsOutsideTheRoot(t *testing.T) {
	o := Options{FS: vfs.NewMem(), Dir: "store", Instance: fill16(1)}
	for _, err := range []error{o.FS.Mkdir(o.Dir), Format(o, nil, 1)} {
		must.Do(t, err)
	}
	kinds := map[string]int{}
	count := func(r *MetadataRow) error { kinds[r.Kind]++; return r.Problem }
	if err := ReadMetadata(o, count); err != nil || kinds["root"] != 1 || kinds["format"] != 1 ||
		kinds["log_start"] != 1 {
		t.Fatalf("rows %v, error %v", kinds, err)
	}
	stop := errors.New("stop")
	must.Fail(t, ReadMetadata(o, func(*MetadataRow) error { return stop }), stop)
	full := must.Get(o.withDefaults())(t)
	meta := must.Get(openMeta(&full, metaWrite, newPoison()))(t)
	must.Do(t, errors.Join(meta.db.Set(userKey([]byte("k")), []byte("v"), nil), meta.close()))
	must.Fail(t, ReadMetadata(o, count), fault.ErrCorrupt, "rows")
	must.Equal(t, kinds["caller"], 1, "rows")
}
