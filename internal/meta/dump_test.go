package meta

import (
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

func TestDumpShowsEveryFieldOfARow(t *testing.T) {
	var out strings.Builder
	s := Store{DefaultHistorySec: 604800, ClockHigh: 0x1000, NextTable: 4, LogEnd: 7}
	must.Do(t, Dump(&out, StoreKey(), s.Encode()))
	want := `store row
  0       01                       key
  0       08 80 f5 24              field 1, wire type 0
  4       11 00 10 00 00 00 00 00  field 2, wire type 1
  12      00
  13      18 04                    field 3, wire type 0
  15      21 07 00 00 00 00 00 00  field 4, wire type 1
  23      00
`
	must.Equal(t, out.String(), want)
	for _, key := range [][]byte{TableKey(3), RowSetKey(3, 1), {9}} {
		must.Fail(t, Dump(&out, key, []byte{0xff}), fault.ErrCorrupt, key)
	}
}
