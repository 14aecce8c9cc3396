package carbondata

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/must"
)

// TestTimesBeyondMicroseconds reads stored times that have no microseconds in 64 bits: values that
// no column here holds, and no damage.
func TestTimesBeyondMicroseconds(t *testing.T) {
	for name, c := range map[string]struct {
		column Column
		value  func(millis rawInt) any
	}{
		"time":  {column("c", Timestamp), func(millis rawInt) any { return millis }},
		"array": {column("c", Array, column("", Timestamp)), func(millis rawInt) any { return []any{nil, millis} }},
		"struct": {column("c", Struct, column("f", Timestamp), column("g", Int)), func(millis rawInt) any {
			return []any{millis, int32(1)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rows := [][]any{{int32(0), c.value(0)}, {int32(1), c.value(math.MaxInt64/1000 + 1)},
				{int32(2), c.value(math.MinInt64)}}
			table := must.Get(Open(writeStored(t, []Column{column("id", Int), c.column}, rows)))(t)
			defer table.Close()
			check := func(err error, row int) {
				t.Helper()
				bad, ok := errors.AsType[*RowError](err)
				if !ok || bad.Row != row || bad.Column != "c" || !errors.Is(err, ErrRow) ||
					errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "out of the range of microseconds") {
					t.Errorf("row %d: %v", row, err)
				}
			}
			n := 0
			for _, err := range table.Rows(t.Context(), ScanOptions{}) {
				if n++; n == 2 {
					check(err, 1)
				} else if err != nil {
					t.Error(err)
				}
			}
			s := must.Get(table.Scan(t.Context(), ScanOptions{}))(t)
			defer s.Close()
			for s.Next() {
			}
			check(s.Err(), 1)
			if name == "time" {
				for _, err := range table.Rows(t.Context(), ScanOptions{Filter: Gt("c", Micros(1))}) {
					check(err, -1)
				}
			}
			if err := table.Verify(t.Context()); errors.Is(err, ErrCorrupt) {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

// TestLongTextIsNoDamage decompresses more than there is memory for.
func TestLongTextIsNoDamage(t *testing.T) {
	text := bytes.Repeat([]byte{0, 0}, 4<<20)
	encoder := must.Get(zstd.NewWriter(nil))(t)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(text)
	z.Close()
	for codec, data := range map[string][]byte{codec.Snappy: snappy.Encode(nil, text),
		codec.Zstd: encoder.EncodeAll(text, nil), codec.Gzip: zipped.Bytes()} {
		column := column("c", String)
		read := func(data []byte, left int) error {
			p := &page{column: &column, form: formStrings, rows: len(text) / lengthLen, prefix: lengthLen}
			return p.decode(codec, data, nil, &memory{left: left})
		}
		must.Do(t, read(data, 64<<20), codec)
		if err := read(data, 1<<20); !errors.Is(err, ErrUnsupported) || errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: with little memory: %v", codec, err)
		}
		if err := read(data[:len(data)/2], 64<<20); !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: cut off: %v", codec, err)
		}
	}
}

// TestUnknownStatusesAreUnsupported has words of later versions in the lists of a table.
func TestUnknownStatusesAreUnsupported(t *testing.T) {
	_, _, err := parseStatus([]byte(`[{"loadName":"0","loadStatus":"Frozen"}]`))
	_, errFolder := parseSegment([]byte(`{"locationMap":{"a":{"files":["x.carbonindex"],"status":"Frozen"}}}`))
	_, errUpdate := parseUpdates([]byte(`[{"segmentName":"0","blockName":"part-0-0","segmentStatus":"Frozen"}]`))
	for _, err := range []error{err, errFolder, errUpdate} {
		if !errors.Is(err, ErrUnsupported) || errors.Is(err, ErrCorrupt) ||
			!strings.Contains(fmt.Sprint(err), `"Frozen"`) {
			t.Error(err)
		}
	}
	must.Fail(t, must.Err2(parseStatus([]byte(`[{"loadName":"0"}]`))), ErrCorrupt)
}
