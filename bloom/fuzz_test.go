package bloom

import (
	"errors"
	"io"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// FuzzFile fuzzes the payloads of two filters in a file whose checksums and index are valid, and a
// key to look up. The lookup must give an answer or one of the two expected errors, the same answer
// if repeated, and no panic.
func FuzzFile(f *testing.F) {
	good := must.Hex(f, "02 00 00 00 | 08 03 | 00 00 00 20 80 01 00 00 20 02 00 40 00 08 06 00")
	f.Add(good, good, []byte("alpha"))
	f.Add(good, []byte{0, 0, 0, 0, 1}, []byte("zeta"))
	fuzztest.Run(f, func(t *testing.T, first, second, key []byte) {
		src := &block.Memory{}
		w := must.Get(cfile.NewRawWriter(src, cfile.WriterOptions{}))(t)
		for i, payload := range [][]byte{first, second} {
			if len(payload) == 0 {
				return
			}
			must.Do(t, w.AppendBlock([][]byte{payload}, []byte{'a' + byte(i)*12}, []byte{'a' + byte(i)*11}))
		}
		must.Do(t, w.Finish())
		r, err := Open(src, cfile.ReaderOptions{})
		if err != nil {
			t.Fatal(err) // header and footer are valid
		}
		answer, err := r.MayContain(MakeProbe(key))
		for range 2 {
			again, err2 := r.MayContain(MakeProbe(key))
			must.Equal(t, answer, again, err, err2)
			must.Equal(t, err == nil, err2 == nil, err, err2)
		}
		for _, err := range []error{err, r.Verify(), Dump(io.Discard, src.Bytes)} {
			if err != nil && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Fatalf("neither ErrCorrupt nor ErrUnsupported: %v", err)
			}
		}
	})
}
