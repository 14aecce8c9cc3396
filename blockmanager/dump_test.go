package blockmanager

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// golden compares with testdata/name, or, with ORIBI_REWRITE set, writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("ORIBI_REWRITE") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

func TestDumpsShowEveryByte(t *testing.T) {
	instance, in := fill16(1), containerID(fill16(10))
	var out bytes.Buffer
	intent := slot{state: slotIntent, root: root{epoch: 2, hash: setHash{7, 8}}, previous: setHash{5, 6}}
	if err := DumpAnchor(&out, append(intent.encode(instance), make([]byte, slotLen)...)); err != nil {
		t.Fatal(err)
	}
	golden(t, "anchor.dump", out.Bytes())

	out.Reset()
	if err := DumpContainer(&out, encodeHeader(instance, in)); err != nil {
		t.Fatal(err)
	}
	golden(t, "container.dump", out.Bytes())

	out.Reset()
	st := newState()
	c := &container{id: in, row: containerRow{containerFull, 1 << 30}}
	st.containers[in] = c
	b := &liveBlock{id: 7, blockRow: blockRow{container: in, off: 8192, length: 5, sum: 3, identity: 4}, in: c}
	st.blocks[7] = b
	st.dead[string(deadKey(in, 4096))] = &deadRange{in: c, off: 4096, length: 100}
	st.format = formatRow{4096, instance}
	st.mark, st.logStart, st.epoch = 1025, 9, 2
	st.caller.put("table", []byte("row"))
	if err := (&Manager{state: st}).DumpMetadata(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "metadata.dump", out.Bytes())
	if DumpAnchor(&out, nil) == nil || DumpContainer(&out, make([]byte, 100)) == nil {
		t.Error("a piece is taken for the whole")
	}
}
