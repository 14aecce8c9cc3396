package kvlines

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/kv"
)

func TestTextOfByteStrings(t *testing.T) {
	for b, want := range map[string]string{
		"":         "",
		"a b":      "a b",
		"é\u00a0":  "é\u00a0",
		"\u009f":   "0xc29f",
		"a\x7f":    "0x617f",
		"a\tb":     "0x610962",
		"0":        "0",
		"0x":       "0x3078",
		"0X00":     "0X00",
		"\xff":     "0xff",
		"\xed\xa0": "0xeda0",
		"\ufffd":   "\ufffd",
	} {
		got := string(AppendText(nil, []byte(b)))
		must.Equal(t, got, want, b)
		must.Equal(t, string(must.Get(Parse(got))(t)), b, got)
	}
}

// TestPrintedPairsReadBack prints random pairs as JSON and as CSV, and reads them.
func TestPrintedPairsReadBack(t *testing.T) {
	rng := seedtest.Rand(t)
	random := func() []byte {
		b := make([]byte, rng.IntN(5))
		for i := range b {
			b[i] = "0xab\"\\,\n\x00\xc3\xa9\xff"[rng.IntN(12)]
		}
		return b
	}
	var want []kv.Pair
	var json, csv []byte
	csv = append(csv, "value,key\n"...)
	quoted := func(b []byte) string { return `"` + strings.ReplaceAll(string(AppendText(nil, b)), `"`, `""`) + `"` }
	for range 300 {
		p := kv.Pair{Key: random(), Value: random()}
		want = append(want, p)
		json = AppendJSON(append(json, `{"key":`...), p.Key)
		json = append(AppendJSON(append(json, `,"value":`...), p.Value), "}\n"...)
		csv = fmt.Appendf(csv, "%s,%s\n", quoted(p.Value), quoted(p.Key))
	}
	for name, pairs := range map[string]iter.Seq2[kv.Pair, error]{"json": JSON("in", bytes.NewReader(json)),
		"csv": CSV("in", bytes.NewReader(csv))} {
		n := 0
		for p, err := range pairs {
			if err != nil || !bytes.Equal(p.Key, want[n].Key) || !bytes.Equal(p.Value, want[n].Value) {
				t.Fatalf("%s: pair %d is %q, %v, want %q", name, n, p, err, want[n])
			}
			n++
		}
		must.Equal(t, n, len(want), name)
	}
}

func TestLongKeysAndValuesAreRefused(t *testing.T) {
	long := strings.Repeat("k", kv.MaxKeyBytes+1)
	for _, err := range JSON("in", strings.NewReader("\n"+`{"key":"`+long+`","value":""}`)) {
		must.Equal(t, fmt.Sprint(err), "in:2: a key of 16385 bytes, at most 16384 are allowed")
	}
}

// TestLiveVersions compares the live rows of random cells with a direct implementation of the
// definition of each mark.
func TestLiveVersions(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 300 {
		var cells []hfile.Cell
		for range rng.IntN(12) {
			c := hfile.Cell{Value: []byte{byte(rng.IntN(256))}}
			c.Row, c.Family, c.Timestamp = []byte{'a' + byte(rng.IntN(2))}, []byte("f"), rng.Int64N(5)
			c.Type = []hfile.Type{hfile.Put, hfile.Put, hfile.Put, hfile.Delete, hfile.DeleteColumn, hfile.DeleteFamily,
				hfile.DeleteFamilyVersion}[rng.IntN(7)]
			if ofColumn(c.Type) {
				c.Qualifier = []byte("q")
			}
			cells = append(cells, c)
		}
		slices.SortStableFunc(cells, func(a, b hfile.Cell) int { return a.Key.Compare(b.Key) })
		var got []string
		for p, err := range live(sequence(cells)) {
			must.Do(t, err)
			got = append(got, fmt.Sprintf("%s=%x", p.Key, p.Value))
		}
		must.Equal(t, got, liveByDefinition(cells), cells)
	}
}

func sequence(cells []hfile.Cell) iter.Seq2[hfile.Cell, error] {
	return func(yield func(hfile.Cell, error) bool) {
		for _, c := range cells {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// liveByDefinition looks at all marks for each Put.
func liveByDefinition(cells []hfile.Cell) (rows []string) {
	for _, row := range []string{"a", "b"} {
		newest := -1
		for i, c := range cells {
			if string(c.Row) != row || c.Type != hfile.Put ||
				newest >= 0 && cmp.Compare(c.Timestamp, cells[newest].Timestamp) <= 0 {
				continue
			}
			deleted := slices.ContainsFunc(cells, func(m hfile.Cell) bool {
				switch {
				case string(m.Row) != row:
					return false
				case m.Type == hfile.DeleteColumn || m.Type == hfile.DeleteFamily:
					return c.Timestamp <= m.Timestamp
				}
				return (m.Type == hfile.Delete || m.Type == hfile.DeleteFamilyVersion) && m.Timestamp == c.Timestamp
			})
			if !deleted {
				newest = i
			}
		}
		if newest >= 0 {
			rows = append(rows, fmt.Sprintf("%s=%x", row, cells[newest].Value))
		}
	}
	return rows
}

// An error shows the beginning of a long key, without cutting a character.
func TestTextOfLongKeys(t *testing.T) {
	for key, want := range map[string]string{
		strings.Repeat("k", 64):        `"` + strings.Repeat("k", 64) + `"`,
		strings.Repeat("k", 65):        `"` + strings.Repeat("k", 64) + `"… of 65 bytes`,
		strings.Repeat("k", 63) + "éé": `"` + strings.Repeat("k", 63) + `"… of 67 bytes`,
		strings.Repeat("\xff", 70):     `"0x` + strings.Repeat("ff", 64) + `"… of 70 bytes`,
		strings.Repeat("k", 50) + strings.Repeat("\xbf", 20): `"0x` +
			strings.Repeat("6b", 50) + strings.Repeat("bf", 10) + `"… of 70 bytes`,
	} {
		must.Equal(t, KeyText([]byte(key)), want, key)
	}
}
