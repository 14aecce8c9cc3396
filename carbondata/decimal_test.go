package carbondata

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/snappy"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/must"
)

// decimalPage returns a file with a DECIMAL of the given digits, two of them after the point, in a
// page of values. The last row is NULL if null is set.
func decimalPage(precision int, values []batch.Int128, null bool) []byte {
	page := anyStruct{pageMeta: anyStruct{metaCodec: i32(0), metaCompressor: []byte(codec.Snappy)}}
	enc, store, width := encAdaptive, inLong, inLong.width()
	if precision > 18 {
		enc, store, width = encDirectCompress, inDecimal, decimalWidth(precision)
	}
	var data []byte
	for _, v := range values {
		number := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(v.Hi)), v.Lo)
		if store == inLong {
			number = binary.LittleEndian.AppendUint64(nil, v.Lo)
		}
		data = append(data, number[len(number)-width:]...)
	}
	const none = "\x00\x02\x00\x00" // a DECIMAL of 0
	meta := "\x00\x00\x0a\x04\x00\x00\x00\x00\x00\x00\x00\x00" + string([]byte{byte(store)}) + "\x00\x00\x00\x00\x00" +
		none + none + none + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	page[pageEncoders], page[pageMetas] = anyListOf(i32(int(enc))), anyListOf([]byte(meta))
	if null {
		last := len(values) - 1
		bits := make([]byte, last/8+1)
		bits[last/8] = 1 << (last % 8)
		page[pagePresence] = anyStruct{presenceSet: false, presenceBits: snappy.Encode(nil, bits)}
	}
	column := anyStruct{columnType: i32(int(Decimal)), columnDimension: false,
		columnPrecision: i32(precision), columnScale: i32(2)}
	return wideFile(1, len(values), column, page, snappy.Encode(nil, data))
}

// TestDecimalsHaveTheDigitsOfTheirColumn reads the largest numbers of some digits, and the numbers
// after them, one by one and in vectors. A NULL may have any number in its place.
func TestDecimalsHaveTheDigitsOfTheirColumn(t *testing.T) {
	one := batch.Int128Of(1)
	for _, precision := range []int{4, 9, 10, 18, 20, 38} {
		limit := batch.Pow10(precision)
		most, _ := limit.Add(one.Neg())
		values := []batch.Int128{{}, most, most.Neg(), one}
		for name, c := range map[string]struct {
			last          batch.Int128
			null, refused bool
		}{
			"largest": {most, false, false}, "too large": {limit, false, true},
			"too small": {limit.Neg(), false, true}, "NULL": {limit, true, false},
		} {
			data := decimalPage(precision, append(values[:len(values):len(values)], c.last), c.null)
			path := filepath.Join(t.TempDir(), "part-0-0_batchno0-0-null-1.snappy.carbondata")
			must.Do(t, os.WriteFile(path, data, 0o600))
			for reader, err := range map[string]error{"rows": rowsOf(t, path),
				"vectors": scanOf(t, path), "verify": verifyFile(data)} {
				if c.refused != errors.Is(err, ErrCorrupt) || !c.refused && err != nil {
					t.Errorf("DECIMAL(%d,2): %s: %s: %v", precision, name, reader, err)
				}
			}
		}
	}
}

func rowsOf(t *testing.T, path string) (err error) {
	table, err := Open(path)
	if err != nil {
		return err
	}
	defer table.Close()
	for _, err := range table.Rows(t.Context(), ScanOptions{}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func scanOf(t *testing.T, path string) error {
	table, err := Open(path)
	if err != nil {
		return err
	}
	defer table.Close()
	s, err := table.Scan(t.Context(), ScanOptions{})
	if err != nil {
		return err
	}
	for s.Next() {
	}
	return s.Close()
}
