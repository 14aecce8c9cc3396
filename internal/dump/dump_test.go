package dump

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestFieldsArePrintedWithTheirMeaning(t *testing.T) {
	var out strings.Builder
	d := New(&out)
	d.Section("file of %d bytes", 120)
	d.Section("header")
	d.Field(0, []byte("kuducfl2"), "magic")
	d.Field(8, []byte{1, 0, 0, 0}, "length of the message: %d", 1)
	d.Field(12, nil, "message: empty")
	d.End()
	d.Field(16, bytes.Repeat([]byte{7}, 10), "keys")
	d.Note("ends at byte %d", 26)
	d.End()
	d.End() // one too many does no harm
	d.Note("done")
	want := strings.Join([]string{
		"file of 120 bytes",
		"  header",
		"    0       6b 75 64 75 63 66 6c 32  magic",
		"    8       01 00 00 00              length of the message: 1",
		"    12                               message: empty",
		"  16      07 07 07 07 07 07 07 07  keys",
		"  24      07 07",
		"  ends at byte 26",
		"done", "",
	}, "\n")
	if got := out.String(); got != want || d.Err() != nil {
		t.Errorf("got (%v)\n%s\nwant\n%s", d.Err(), got, want)
	}
}

func TestLongFieldIsCutButNoChangeIsLost(t *testing.T) {
	print := func(b []byte) string {
		var out strings.Builder
		New(&out).Field(0, b, "bitmap")
		return out.String()
	}
	b := make([]byte, 4096)
	before := print(b)
	must.Equal(t, strings.Count(before, "\n"), 9, "lines", before)
	if !strings.Contains(before, "64      … 4032 bytes more, crc ") {
		t.Errorf("no word of the rest:\n%s", before)
	}
	for _, i := range []int{0, 63, 64, 4095} {
		b[i] = 1
		if print(b) == before {
			t.Errorf("a change of byte %d is not seen", i)
		}
		b[i] = 0
	}
	if got := print(make([]byte, 72)); strings.Contains(got, "…") {
		t.Errorf("the last 8 bytes of 72 were cut:\n%s", got)
	}
}

type failing struct{ left int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left == 0 {
		return 0, errFull
	}
	f.left--
	return len(p), nil
}

func TestFirstErrorIsKept(t *testing.T) {
	w := &failing{left: 2}
	d := New(w)
	for range 5 {
		d.Note("line")
	}
	w.left = 5
	d.Note("line")
	if !errors.Is(d.Err(), errFull) || w.left != 5 {
		t.Errorf("err %v, %d writes left", d.Err(), w.left)
	}
}

func TestWholeWriterPrintsEveryByte(t *testing.T) {
	var out strings.Builder
	NewWhole(&out).Field(0, bytes.Repeat([]byte{7}, 4096), "bitmap")
	must.Equal(t, strings.Count(out.String(), " 07"), 4096, "bytes of 4096 are printed")
}
