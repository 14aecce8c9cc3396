package delta

import (
	"bytes"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
)

// TestStatsExample checks the worked example of Stats (tablet spec §6.4).
func TestStatsExample(t *testing.T) {
	s := Stats{Deletes: 1, Columns: []ColumnUpdates{{11, 3}}, Min: 7, Max: 9}
	want := must.Hex(t, "08 01 19 07 00 00 00 00 00 00 00 21 09 00 00 00 00 00 00 00 2a 04 08 0b 10 03 30 00")
	got := must.Get(s.encode())(t)
	must.Equal(t, got, want, "encoded")
	back := must.Get(decodeStats(want))(t)
	must.Equal(t, back, s, "decoded")
}

func TestStatsRefuseImpossibleValues(t *testing.T) {
	const whole = "08 01 19 07 00 00 00 00 00 00 00 21 09 00 00 00 00 00 00 00"
	for name, message := range map[string]string{
		"empty":                "",
		"cut":                  whole[:len(whole)-3],
		"no maximum":           "08 01 19 07 00 00 00 00 00 00 00",
		"fewer than 0 deletes": strings.Replace(whole, "08 01", "08 ff ff ff ff ff ff ff ff ff 01", 1),
		"column twice":         whole + " 2a 04 08 0b 10 03 2a 04 08 0b 10 01",
		"column below 0":       whole + " 2a 0d 08 ff ff ff ff ff ff ff ff ff 01 10 03",
	} {
		must.Fail(t, must.Err(decodeStats(must.Hex(t, message))), fault.ErrCorrupt, name)
	}
	must.Do(t, must.Err(decodeStats(must.Hex(t, whole))), "whole statistics")
}

// TestDeltaKeyExamples checks the worked examples of delta keys (tablet spec §6.1, §6.2).
func TestDeltaKeyExamples(t *testing.T) {
	for _, c := range []struct {
		row   uint32
		ts    mvcc.Timestamp
		bytes string
	}{
		{0, 1, "00 01"},
		{5, 7, "05 07"},
		{1000, 0x60a24181e4000003, "f3 f8 ff 60 a2 41 81 e4 00 00 03"},
		{70000, 0x60a24181e4000000, "fa 01 11 70 ff 60 a2 41 81 e4 00 00 00"},
		{1<<32 - 1, mvcc.Max, "fb ff ff ff ff ff ff ff ff ff ff ff ff ff"},
	} {
		key := AppendKey(nil, c.row, c.ts)
		if !bytes.Equal(key, must.Hex(t, c.bytes)) {
			t.Errorf("key (%d, %x): % x, want %s", c.row, uint64(c.ts), key, c.bytes)
		}
		d, err := Parse(append(key, 2))
		if err != nil || d.Row != c.row || d.TS != c.ts || !bytes.Equal(d.List, []byte{2}) {
			t.Errorf("cell % x 02 is %+v, %v", key, d, err)
		}
		for n := range key {
			must.Fail(t, must.Err(Parse(key[:n])), fault.ErrCorrupt, "key cut to", key[:n])
		}
	}
	d, err := Parse(must.Hex(t, "05 07 01 0b 05 05 00 00 00"))
	if err != nil || d.Row != 5 || d.TS != 7 || !bytes.Equal(d.List, setInt(11, 5)) {
		t.Errorf("the example of a cell: %+v, %v", d, err)
	}
	must.Fail(t, must.Err(Parse(must.Hex(t, "fc 01 00 00 00 00 07 02"))), fault.ErrCorrupt, "row 2^32")
}
