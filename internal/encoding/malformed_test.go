package encoding

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// readAll parses a payload and decodes all of it in windows, so that a large count alone allocates
// no memory.
func readAll(p Params) error {
	b, err := Parse(p)
	if err != nil {
		return err
	}
	v := batch.NewVector(p.Type, 0)
	for from := 0; from < min(b.Len(), 1<<20); {
		n := min(batch.WindowRows, b.Len()-from)
		v.Reset(n)
		if err := b.Decode(from, n, v, 0); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// The checklist of cfile spec §12.3, items 38 to 49, by number.
func TestMalformedPayloadsAreCorrupt(t *testing.T) {
	const head = "02 00 00 00 00 00 00 00" // 2 values from row 0; for byte strings and bitshuffle ordinal 2, no values
	dict := &batch.Dictionary{Words: stringCells("a", "b")}
	shuffle := func(count, size, padded, width, chunks string) string {
		return "00 00 00 00" + count + size + padded + width + chunks
	}
	for _, c := range []struct {
		name string
		typ  schema.Type
		enc  schema.Encoding
		hex  string
	}{
		{"38 plain", schema.Int32, schema.Plain, "00 00 00 00 00 00 00"},
		{"38 plain bool", schema.Bool, schema.Plain, "00 00 00 00 00 00 00"},
		{"38 rle", schema.Int32, schema.RLE, "00 00 00 00 00 00 00"},
		{"38 bitshuffle", schema.Int32, schema.Bitshuffle, strings.Repeat("00", 19)},
		{"38 plain binary", schema.String, schema.Plain, strings.Repeat("00", 11)},
		{"38 prefix", schema.String, schema.Prefix, "00 00 00 10"},
		{"38 dict", schema.String, schema.Dictionary, "01 00 00"},
		{"38 dict nested", schema.String, schema.Dictionary, "01 00 00 00 00"},
		{"39 plain too long", schema.Int8, schema.Plain, head + "01 02 03"},
		{"39 plain too short", schema.Int8, schema.Plain, head + "01"},
		{"39 bool too long", schema.Bool, schema.Plain, head + "01 00"},
		{"40 count × width past 2^32", schema.Int32, schema.Plain, "01 00 00 40 00 00 00 00 00 00 00 00"},
		{"52 ordinal past 2^32", schema.Int8, schema.Plain, "02 00 00 00 ff ff ff ff 01 02"},
		{"42 header over 5 bytes", schema.Int8, schema.RLE, head + "80 80 80 80 80 00 00"},
		{"42 header over 31 bits", schema.Int8, schema.RLE, head + "80 80 80 80 08 00"},
		{"42 repeat of 0", schema.Int8, schema.RLE, head + "00 05 04 05"},
		{"42 no groups", schema.Int8, schema.RLE, head + "01 05 04 05"},
		{"42 no value of a repeat", schema.Int32, schema.RLE, head + "04 01 02 03"},
		{"42 too few literals", schema.Int16, schema.RLE, head + "03 01 00 02"},
		{"42 stream ends", schema.Int8, schema.RLE, head + "02 05"},
		{"42 too few bits", schema.Bool, schema.RLE, "09 00 00 00 00 00 00 00 05 ff"},
		{"43 size", schema.Int32, schema.Bitshuffle,
			shuffle("00 00 00 00", "15 00 00 00", "00 00 00 00", "04 00 00 00", "")},
		{"43 padded", schema.Int32, schema.Bitshuffle,
			shuffle("00 00 00 00", "14 00 00 00", "08 00 00 00", "04 00 00 00", "")},
		{"43 width 0", schema.Int32, schema.Bitshuffle,
			shuffle("00 00 00 00", "14 00 00 00", "00 00 00 00", "00 00 00 00", "")},
		{"43 width 3", schema.Uint32, schema.Bitshuffle,
			shuffle("00 00 00 00", "14 00 00 00", "00 00 00 00", "03 00 00 00", "")},
		{"43 narrowed int32", schema.Int32, schema.Bitshuffle,
			shuffle("00 00 00 00", "14 00 00 00", "00 00 00 00", "01 00 00 00", "")},
		{"43 wide uint32", schema.Uint32, schema.Bitshuffle,
			shuffle("00 00 00 00", "14 00 00 00", "00 00 00 00", "08 00 00 00", "")},
		{"43 count past the payload", schema.Int32, schema.Bitshuffle,
			shuffle("ff ff ff ff", "14 00 00 00", "00 00 00 00", "04 00 00 00", "")},
		{"44 no chunk", schema.Int32, schema.Bitshuffle,
			shuffle("03 00 00 00", "14 00 00 00", "08 00 00 00", "04 00 00 00", "")},
		{"44 chunk too long", schema.Int32, schema.Bitshuffle,
			shuffle("03 00 00 00", "19 00 00 00", "08 00 00 00", "04 00 00 00", "00 00 00 02 00")},
		{"44 bytes after", schema.Int32, schema.Bitshuffle,
			shuffle("00 00 00 00", "15 00 00 00", "00 00 00 00", "04 00 00 00", "00")},
		{"44 not LZ4", schema.Int32, schema.Bitshuffle,
			shuffle("03 00 00 00", "1a 00 00 00", "08 00 00 00", "04 00 00 00", "00 00 00 02 0f ff")},
		{"44 LZ4 too short", schema.Int32, schema.Bitshuffle,
			shuffle("03 00 00 00", "1a 00 00 00", "08 00 00 00", "04 00 00 00", "00 00 00 02 10 01")},
		{"45 offsets before the values", schema.String, schema.Plain, "00 00 00 00 00 00 00 00 0b 00 00 00"},
		{"45 offsets past the end", schema.String, schema.Plain, "00 00 00 00 00 00 00 00 0d 00 00 00"},
		{"45 no offsets", schema.String, schema.Plain, "00 00 00 00 01 00 00 00 0c 00 00 00"},
		{"45 group cut short", schema.String, schema.Plain, "00 00 00 00 01 00 00 00 0c 00 00 00 c0 0c 00 00 00"},
		{"45 first not 12", schema.String, schema.Plain, "00 00 00 00 01 00 00 00 0d 00 00 00 61 00 0d 00 00 00"},
		{"45 falling", schema.String, schema.Plain, "00 00 00 00 03 00 00 00 0f 00 00 00 61 62 63 00 0c 0e 0d 00"},
		{"45 past the values", schema.String, schema.Plain, "00 00 00 00 02 00 00 00 0d 00 00 00 61 00 0c 0e 00 00"},
		{"45 bytes after", schema.String, schema.Plain, "00 00 00 00 01 00 00 00 0d 00 00 00 61 00 0c 00 00 00 00"},
		{"45 bytes of no value", schema.String, schema.Plain, "00 00 00 00 00 00 00 00 0d 00 00 00 61"},
		{"46 header cut short", schema.String, schema.Prefix, "ff 00 00 10 00 00 00 00 00"},
		{"46 no restart count", schema.String, schema.Prefix, "00 00 00 10 00 00 00 00"},
		{"46 too many restarts", schema.String, schema.Prefix, "00 01 00 10 00 00 00 ff ff ff 3f"},
		{"46 restarts for no values", schema.String, schema.Prefix, "00 00 00 10 00 05 00 00 00 01 00 00 00"},
		{"46 one restart too few", schema.String, schema.Prefix, "00 02 00 01 00 00 01 61 00 01 62 00 00 00 00"},
		{"46 interval 0", schema.String, schema.Prefix, "00 00 00 00 00 00 00 00 00"},
		{"46 restart elsewhere", schema.String, schema.Prefix,
			"00 02 00 01 00 00 01 61 00 01 62 07 00 00 00 01 00 00 00"},
		{"46 restart that shares", schema.String, schema.Prefix,
			"00 02 00 01 00 00 01 61 01 01 62 08 00 00 00 01 00 00 00"},
		{"46 first shares", schema.String, schema.Prefix, "00 01 00 10 00 01 01 61 00 00 00 00"},
		{"46 shares too much", schema.String, schema.Prefix, "00 02 00 10 00 00 01 61 02 01 62 00 00 00 00"},
		{"46 entry overruns", schema.String, schema.Prefix, "00 01 00 10 00 00 02 61 00 00 00 00"},
		{"46 too few entries", schema.String, schema.Prefix, "00 02 00 10 00 00 01 61 00 00 00 00"},
		{"46 bytes after", schema.String, schema.Prefix, "00 01 00 10 00 00 01 61 00 00 00 00 00 00"},
		{"46 count past the payload", schema.String, schema.Prefix, "c0 ff ff ff 7f 00 10 00 00 01 61 ff ff ff 07"},
		{"47 mode 0", schema.String, schema.Dictionary,
			"00 00 00 00" + shuffle("00 00 00 00", "14 00 00 00", "00 00 00 00", "01 00 00 00", "")},
		{"47 mode 3", schema.String, schema.Dictionary,
			"03 00 00 00" + shuffle("00 00 00 00", "14 00 00 00", "00 00 00 00", "01 00 00 00", "")},
		// One row of code 2, literal bytes 00 01 00 00 00 00 00 00.
		{"47 code past the dictionary", schema.String, schema.Dictionary,
			"01 00 00 00" + shuffle("01 00 00 00", "21 00 00 00", "08 00 00 00", "01 00 00 00",
				"00 00 00 09 80 00 01 00 00 00 00 00 00")},
	} {
		payload := must.Hex(t, c.hex)
		for _, d := range []*batch.Dictionary{dict, {}} {
			for limit := range 2 {
				if err := readAll(Params{Type: c.typ, Encoding: c.enc, Payload: payload, Dict: d,
					Limit: limit}); !errors.Is(err, fault.ErrCorrupt) {
					t.Errorf("%s: %v, want ErrCorrupt", c.name, err)
				}
			}
		}
	}
}

func TestCodesWithoutDictionaryAreCorrupt(t *testing.T) {
	b := mustBuilder(t, BuilderOptions{Type: schema.String, Encoding: schema.Dictionary})
	b.Append(vectorOf(schema.String, stringCells("a")), 0, 1)
	p := Params{Type: schema.String, Encoding: schema.Dictionary, Payload: b.Finish(nil, 0)}
	must.Fail(t, must.Err(Parse(p)), fault.ErrCorrupt)
	p.Dict = &batch.Dictionary{}
	block := must.Get(Parse(p))(t)
	must.Fail(t, must.Err(block.Cell(0)), fault.ErrCorrupt)
	must.Fail(t, block.(CodeBlock).Codes(0, 1, make([]uint32, 1)), fault.ErrCorrupt)
}

func TestMalformedProloguesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"48 empty":               "",
		"48 rows cut short":      "80",
		"48 no size":             "03",
		"48 size past the end":   "03 03 06 00",
		"49 bitmap too short":    "04 02 06 00",
		"49 bitmap empty":        "04 00",
		"49 literals cut short":  "10 02 05 ff",
		"42 run of no values":    "01 02 00 01",
		"rows over 32 bits":      "ff ff ff ff 1f 00",
		"an endless bitmap of 0": "ff ff ff ff 0f 02 02 00",
	} {
		if _, _, _, err := ParseNullPrologue(must.Hex(t, text)); !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
	// Four runs of 2^30 rows: well-formed, and 512 MiB of bitmap.
	huge := must.Hex(t, "ff ff ff ff 0f 18 fe ff ff ff 07 00 fe ff ff ff 07 00 fe ff ff ff 07 00 fe ff ff ff 07 00")
	if _, _, _, err := ParseNullPrologue(append(huge, 0)); !errors.Is(err, fault.ErrCorrupt) &&
		!errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("2^32 rows: %v", err)
	}
}

func TestTruncatedPayloadsAreCorrupt(t *testing.T) {
	r := seedtest.Rand(t)
	for _, pair := range pairs() {
		cells := randomCells(r, pair.Type, 40)
		b := mustBuilder(t, BuilderOptions{Type: pair.Type, Encoding: pair.Encoding, RestartInterval: 4})
		payloads, _, dict := buildAll(b, pair.Type, cells, 40)
		if dict != nil {
			pair.Dict, _ = ParseDictionary(dict)
		}
		for cut := range len(payloads[0]) {
			pair.Payload, pair.Limit = payloads[0][:cut:cut], cut%2
			must.Fail(t, readAll(pair), fault.ErrCorrupt, pair.Type, pair.Encoding, cut)
		}
	}
}

func TestDamagedPayloadsAllocateLittle(t *testing.T) {
	r := seedtest.Rand(t)
	var before, after runtime.MemStats
	for _, pair := range pairs() {
		cells := randomCells(r, pair.Type, 2000)
		b := mustBuilder(t, BuilderOptions{Type: pair.Type, Encoding: pair.Encoding})
		payloads, _, dict := buildAll(b, pair.Type, cells, 2000)
		if dict != nil {
			pair.Dict, _ = ParseDictionary(dict)
		}
		runtime.ReadMemStats(&before)
		size := 0
		for range 50 {
			pair.Payload = append([]byte(nil), payloads[0]...)
			for range 1 + r.IntN(3) {
				i := r.IntN(len(pair.Payload))
				if r.IntN(2) == 0 {
					i %= 24
				}
				pair.Payload[i%len(pair.Payload)] ^= 1 << r.IntN(8)
			}
			block, err := Parse(pair)
			if err == nil {
				size += block.Footprint()
			} else if !errors.Is(err, fault.ErrCorrupt) {
				t.Fatalf("%s %s: %v", pair.Type, pair.Encoding, err)
			}
			size += len(pair.Payload)
		}
		runtime.ReadMemStats(&after)
		if got := int(after.TotalAlloc - before.TotalAlloc); got > 1<<20+8*size {
			t.Errorf("%s %s: %d bytes allocated for payloads of %d", pair.Type, pair.Encoding, got, size)
		}
	}
}
