package store

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// The error of the first record that cannot be applied is returned, at the latest at the end.
func TestReplayerReturnsItsFirstError(t *testing.T) {
	for _, bad := range []int{0, 3, 20, 40, 60, 99} {
		to := NewReplayer(nil, 5, nil)
		var failed error
		for i := 0; i < 100 && failed == nil; i++ {
			var w record.Writer
			w.Begin(mvcc.Timestamp(i + 1))
			op := record.Op{Table: 4, Kind: change.Delete, Key: make([]byte, 1<<10)}
			if i >= bad {
				op.Table = 5
			}
			for range 1 + i%30*5 {
				w.Add(op)
			}
			failed = to.Add(lsn.LSN(i+1), mvcc.Timestamp(i+1), w.Bytes())
		}
		err := to.Close()
		if failed != nil && failed != err {
			t.Errorf("record %d: %v, at the end %v", bad, failed, err)
		}
		must.Fail(t, err, fault.ErrCorrupt, "record", bad)
		must.Contain(t, err.Error(), fmt.Sprintf("lsn %d:", bad+1), "record", bad)
	}
}
