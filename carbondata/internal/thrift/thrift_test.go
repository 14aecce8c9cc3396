package thrift

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
)

// message returns a message with a field of each type.
func message() []byte {
	w := new(Writer)
	w.Bool(1, true)
	w.I32(2, -7)
	w.I64s(20, []int64{1 << 40, -1})
	w.Begin(21)
	w.Text(1, "inner")
	w.End()
	w.Binaries(22, [][]byte{[]byte("a"), nil})
	w.Properties(60, map[string]string{"k": "v", "l": ""})
	w.Stop()
	return w.Out
}

func TestMessagesRoundTrip(t *testing.T) {
	r := &Reader{In: message()}
	var yes bool
	var n int
	var list []int64
	var text string
	var count int
	var m map[string]string
	r.Fields("message", func(id int, typ byte) {
		switch id {
		case 1:
			yes = r.Bool(typ)
		case 2:
			n = r.I32(typ)
		case 20:
			list = r.I64s(typ)
		case 21:
			r.Fields("inner", func(_ int, typ byte) { text = r.Text(typ) }, 1)
		case 60:
			m = r.Properties(typ)
		default:
			count++
			r.Skip(typ)
		}
	}, 1, 2, 20, 21, 60)
	if r.Err != nil || r.At != len(r.In) {
		t.Fatalf("at byte %d of %d: %v", r.At, len(r.In), r.Err)
	}
	if !yes || n != -7 || !slices.Equal(list, []int64{1 << 40, -1}) || text != "inner" || count != 1 ||
		!maps.Equal(m, map[string]string{"k": "v", "l": ""}) {
		t.Errorf("%v %d %d %q %d %v", yes, n, list, text, count, m)
	}
}

// A message that ends too early is corrupt, and says that it is short.
func TestShortMessagesAreErrors(t *testing.T) {
	whole := message()
	for n := range whole {
		r := &Reader{In: whole[:n]}
		r.Skip(Struct)
		if !errors.Is(r.Err, fault.ErrCorrupt) || !r.Short {
			t.Errorf("%d bytes: %v, short %v", n, r.Err, r.Short)
		}
	}
}
