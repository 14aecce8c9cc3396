package carbondata

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// filtered reads the rows that a filter selects, or some others without one in the corpus.
func filtered(t *testing.T, table *Table, text json.RawMessage) error {
	f := NotNull(table.Schema()[0].Name)
	if text != nil {
		f = must.Get(ParseFilter(text))(t)
	}
	for _, err := range table.Rows(t.Context(), ScanOptions{Filter: f}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestMalformedFoldersAreRefused opens each folder, reads all rows, reads rows with a filter, and
// verifies it.
func TestMalformedFoldersAreRefused(t *testing.T) {
	dir := filepath.Join(goldenDir(t), "malformed")
	lines := corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl"))
	if len(lines) < 98 {
		t.Errorf("%d malformed folders", len(lines))
	}
	for _, line := range lines {
		var f struct {
			Name, What, Base, Required, Kind, Trigger string
			Filter                                    json.RawMessage
		}
		must.Do(t, json.Unmarshal([]byte(line), &f))
		t.Run(f.Name, func(t *testing.T) {
			stage := "open"
			table, err := Open(filepath.Join(dir, f.Name))
			if err == nil {
				defer table.Close()
				stage = "scan"
				for _, rowErr := range table.Rows(context.Background(), ScanOptions{}) {
					if err = rowErr; err != nil {
						break
					}
				}
			}
			if err == nil {
				stage = "filter"
				err = filtered(t, table, f.Filter)
			}
			if err == nil {
				stage = "filter"
				err = table.Verify(context.Background())
			}
			t.Log(stage, err)
			if err == nil {
				if f.Required == "error" {
					t.Errorf("%s: accepted", f.What)
				}
				return
			}
			want := ErrCorrupt
			if f.Kind == "NotSupported" {
				want = ErrUnsupported
			}
			must.Fail(t, err, want, f.What)
			if stages := []string{"open", "scan", "filter"}; slices.Index(stages,
				stage) > slices.Index(stages, f.Trigger) {
				t.Errorf("%s: refused at %s: %v", f.What, stage, err)
			}
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "carbondata: ") {
				t.Errorf("message %q", err)
			}
		})
	}
}

// TestVerifyFindsRepeats has pages of two equal values, the second a copy of the first in one piece
// or in two, of which the second is from offset 0. Of strings, reads refuse that too.
func TestVerifyFindsRepeats(t *testing.T) {
	const repeat, copied = "\x01\x08\x01\x00", "\x11\x08"
	page := anyStruct{pageMeta: anyStruct{metaCodec: i32(0), metaCompressor: []byte(codec.Snappy)}}
	texts, numbers := maps.Clone(page), maps.Clone(page)
	texts[pageEncoders] = anyListOf(i32(int(encVarchar)))
	numbers[pageEncoders], numbers[pageMetas] = anyListOf(i32(int(encDirectCompress))), anyListOf([]byte(longMeta))
	for _, c := range []struct {
		typ   Type
		page  anyStruct
		first string // 8 bytes
		want  any    // nil: a read refuses repeats
	}{
		{Varchar, texts, "\x00\x00\x00\x04abcd", nil},
		{Long, numbers, "\x07\x00\x00\x00\x00\x00\x00\x00", int64(7)},
	} {
		for copies, bad := range map[string]bool{copied: false, repeat: true} {
			data := wideFile(1, 2, anyStruct{columnType: i32(int(c.typ)), columnDimension: c.typ == Varchar}, c.page,
				[]byte("\x10\x1c"+c.first+copies))
			for row, err := range openBytes(t, data).Rows(t.Context()) {
				if refused := bad && c.want == nil; refused != errors.Is(err, ErrCorrupt) || !refused && err != nil {
					t.Errorf("%v: %x: %v", c.typ, copies, err)
				}
				if bad && c.want != nil && row[0] != c.want {
					t.Errorf("%v: %x: %v", c.typ, copies, row)
				}
			}
			if err := verifyFile(data); bad != errors.Is(err, ErrCorrupt) || !bad && err != nil {
				t.Errorf("%v: %x: %v", c.typ, copies, err)
			}
		}
	}
}

// TestVerifyFindsPagesThatCannotBeSearched has pages with row IDs: a filter that searches in them
// finds other rows if the strings are not sorted.
func TestVerifyFindsPagesThatCannotBeSearched(t *testing.T) {
	const ids = "\x00\x00\x00\x06\x00\x02\x00\x00\x00\x01" // rows 2, 0, 1
	for strings, good := range map[string]bool{"abc": true, "abb": true, "acb": false, "bac": false} {
		page := anyStruct{pageMeta: anyStruct{metaCodec: i32(0), metaCompressor: []byte(codec.Snappy)},
			pageEncoders: anyListOf(i32(int(encInvertedIndex)))}
		var data []byte
		for _, c := range strings {
			data = append(data, 0, 1, byte(c))
		}
		data = append([]byte{byte(len(data)), byte(len(data)-1) << 2}, data...)
		c := newChunk(anyStruct{columnName: []byte("c"), columnID: []byte("c"), columnOrdinal: i32(0),
			columnType: i32(int(String)), columnDimension: true}, page, 3, data)
		page[pageRowIDs] = i32(len(ids))
		c.header[chunkPageLengths], c.page = anyListOf(i32(len(data)+len(ids))), append(data, ids...)
		file := dataFileOf(3, []storedChunk{c})
		var rows string
		for row, err := range openBytes(t, file).Rows(t.Context()) {
			must.Do(t, err)
			rows += row[0].(string)
		}
		must.Equal(t, rows, strings[1:]+strings[:1], strings)
		if err := verifyFile(file); good != (err == nil) || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", strings, err)
		}
	}
}

// TestMaximaThatAreNoIntegers has pages of a delta codec whose maximum, from which deltas are
// subtracted, does not fit in 64 bits.
func TestMaximaThatAreNoIntegers(t *testing.T) {
	for _, enc := range []encoding{encAdaptiveDelta, encAdaptiveFloatDel, encAdaptiveFloat} {
		for _, most := range []float64{12.5, -1e17, math.NaN(), math.Inf(1), 1 << 63, -1e300} {
			n, err := newNumbers(&Column{Type: Double}, enc,
				encoderMeta{schema: inDouble, store: inByte, decimals: 1, maxFloat: most, fits: true})
			bad := enc != encAdaptiveFloat && !(math.Abs(most) < 1e18)
			if bad != errors.Is(err, ErrCorrupt) || !bad && err != nil {
				t.Errorf("encoding %d of %v: %v, maximum %d", enc, most, err, n.max)
			}
		}
	}
}
