package hfilelines

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

func TestByteStringForms(t *testing.T) {
	for _, c := range []struct{ bytes, json string }{
		{"", `""`}, {"a b~", `"a b~"`}, {`"\`, `"\"\\"`}, {"\n", `"0x0a"`}, {"\x7f", `"0x7f"`}, {"é", `"0xc3a9"`},
		{"0x", `"0x3078"`}, {"0xff", `"0x30786666"`}, {"0X", `"0X"`}, {"\x00", `"0x00"`},
	} {
		must.Equal(t, string(AppendBytes(nil, []byte(c.bytes))), c.json, c.bytes)
		row, _, err := NewReader(strings.NewReader(`{"row":` + c.json + "}")).Column()
		must.Do(t, err, c.json)
		must.Equal(t, string(row), c.bytes, c.json)
	}
	for text, want := range map[string]string{"a": "a", "": "", "0x": "", "0x6162": "ab", "0xFF": "\xff", "é": "é"} {
		must.Equal(t, string(must.Get(ParseBytes(text))(t)), want, text)
	}
	for _, text := range []string{"0xf", "0xzz"} {
		must.Refuse(t, must.Err(ParseBytes(text)), text)
	}
}

// randomBytes returns up to n bytes, printable or not.
func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, r.IntN(n+1))
	printable := r.IntN(2) == 0
	for i := range b {
		if b[i] = byte(r.IntN(256)); printable {
			b[i] = ' ' + b[i]%95
		}
	}
	return b
}

func TestPrintedEntriesAreReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.Seed(t), 0))
	var cells []hfile.Cell
	var lines, pairs []byte
	for range 1000 {
		c := hfile.Cell{Key: hfile.Key{Row: randomBytes(r, 20), Family: randomBytes(r, 5),
			Qualifier: randomBytes(r, 20),
			Timestamp: r.Int64(), Type: hfile.Type(r.IntN(256))}, Value: randomBytes(r, 50)}
		if r.IntN(2) == 0 {
			c.Sequence = r.Int64()
		}
		for range r.IntN(3) {
			c.Tags = hfile.AppendTag(c.Tags, hfile.Tag{Type: uint8(r.IntN(256)), Value: randomBytes(r, 20)})
		}
		lines = must.Get(AppendCell(lines, &c))(t)
		lines = append(lines, '\n')
		pairs = append(AppendKeyValue(pairs, &hfile.KeyValue{Key: c.Row, Value: c.Value}), '\n')
		cells = append(cells, c)
	}
	in, kvs := NewReader(bytes.NewReader(lines)), NewReader(bytes.NewReader(pairs))
	for i, want := range cells {
		got := must.Get(in.Cell())(t)
		must.Equal(t, in.Line(), i+1)
		if got.Compare(want.Key) != 0 || !bytes.Equal(got.Family, want.Family) || got.Sequence != want.Sequence ||
			!bytes.Equal(got.Tags, want.Tags) || !bytes.Equal(got.Value, want.Value) {
			t.Fatalf("cell %d is %v, want %v", i, got, want)
		}
		kv, err := kvs.KeyValue()
		if err != nil || !bytes.Equal(kv.Key, want.Row) || !bytes.Equal(kv.Value, want.Value) {
			t.Fatalf("pair %d is %v, %v", i, kv, err)
		}
	}
	if _, err := in.Cell(); err != io.EOF {
		t.Errorf("after the last line: %v", err)
	}
}

func TestSeekKeyDefaults(t *testing.T) {
	in := NewReader(strings.NewReader("\n{\"row\":\"a\"}\n" +
		`{"row":"a","family":"f","qualifier":"q","ts":-1,"type":"Put"}` + "\n"))
	k, err := in.SeekKey()
	if err != nil || k.Timestamp != math.MaxInt64 || k.Type != hfile.Maximum || in.Line() != 2 {
		t.Errorf("line %d: %v, %v", in.Line(), k, err)
	}
	if k, err = in.SeekKey(); err != nil || k.Timestamp != -1 || k.Type != hfile.Put ||
		string(k.Family)+string(k.Qualifier) != "fq" {
		t.Errorf("%v, %v", k, err)
	}
}

func TestMalformedLinesAreErrors(t *testing.T) {
	const rest = `"family":"f","qualifier":"q","ts":1,"type":"Put","value":""}`
	for line, want := range map[string]string{
		`{`:                                   "not JSON",
		`[1]`:                                 "want an object",
		`{` + rest:                            `"row" is missing`,
		`{"row":"a","row":"b",` + rest:        "twice",
		`{"row":1,` + rest:                    "row: want a string, not a number",
		`{"row":null,` + rest:                 "row: want a string, not null",
		`{"row":"0x0",` + rest:                "two digits per byte",
		`{"row":"a","key":"a",` + rest:        `unknown field "key"`,
		`{"row":"a","mvcc":-1,` + rest:        "mvcc: want a whole number",
		`{"row":"a","mvcc":1.5,` + rest:       "mvcc: want a whole number",
		`{"row":"a","tags":{},` + rest:        "tags: want an array",
		`{"row":"a","tags":[1],` + rest:       "tags: want objects",
		`{"row":"a","tags":[{}],` + rest:      `a tag needs "type" and "value"`,
		`{"row":"a","tags":[{"x":1}],` + rest: `unknown field "x"`,
		`{"row":"a","tags":[{"type":256,"value":""}],` + rest:                                    "0 to 255",
		`{"row":"a","tags":[{"type":1,"value":"0x` + strings.Repeat("00", 65535) + `"}],` + rest: "65535 bytes",
		`{"row":"` + strings.Repeat("a", 32768) + `",` + rest:                                    "row: 32768 bytes",
		`{"row":"a","family":"` + strings.Repeat("f", 128) + `",` + rest[len(`"family":"f",`):]:  "family: 128 bytes",
		`{"row":"a",` + strings.Replace(rest, `"Put"`, `"256"`, 1):                               "unknown type",
		`{"row":"a",` + strings.Replace(rest, `"Put"`, `4`, 1):                                   "want a name",
		`{"row":"a",` + strings.Replace(rest, `:1,`, `:"1",`,
			1): "want an integer of 64 bits",
		`{"row":"a",` + strings.Replace(rest, `:1,`, `:9223372036854775808,`, 1): "want an integer of 64 bits",
	} {
		must.Contain(t, fmt.Sprint(must.Err(NewReader(strings.NewReader(line)).Cell())), want, line)
	}
}
