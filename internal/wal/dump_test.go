package wal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestDumpEqualsGoldenFile compares dumps with testdata; ORIBI_REWRITE=1 writes these anew.
func TestDumpEqualsGoldenFile(t *testing.T) {
	o := small(emptyMem(t))
	l := create(t, o)
	appendAll(t, l, "hello")
	must.Do(t, l.Sync(1))
	appendAll(t, l, "", "a record that is a little longer than one frame may be: 64 bytes!")
	must.Do(t, l.Sync(3))
	appendToNext(t, l, "next segment")
	must.Do(t, l.Close())
	sealed, newest := readFile(t, o.FS, segmentPath(1)), readFile(t, o.FS, segmentPath(2))
	damaged := bytes.Clone(sealed)
	damaged[headerLen+frameLen+1] ^= 1              // payload of LSN 1
	damaged[headerLen+frameLen+8+frameDurableOff]++ // header of LSN 2

	for name, data := range map[string][]byte{
		"sealed": sealed, "newest": newest, "killed": newest[:len(newest)-footerLen], "damaged": damaged,
		"cut": newest[:len(newest)-footerLen-10], "cutfooter": newest[:len(newest)-10], "short": newest[:30],
		"empty": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			must.Do(t, Dump(&out, data))
			golden := filepath.Join("testdata", name+".dump")
			if os.Getenv("ORIBI_REWRITE") != "" {
				must.Do(t, os.MkdirAll("testdata", 0o755))
				must.Do(t, os.WriteFile(golden, out.Bytes(), 0o644))
			}
			want := must.Get(os.ReadFile(golden))(t)
			must.Equal(t, out.Bytes(), want, "the dump differs from", golden)
		})
	}
}

func TestDumpReturnsErrorOfWriter(t *testing.T) {
	must.Fail(t, Dump(failingWriter{}, make([]byte, 500)), os.ErrClosed)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }
