package peer_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/bench/peer/peertest"
	"github.com/oribi-db/oribi/internal/must"
)

func TestAnswersOfPeersMatchTheRows(t *testing.T) {
	for _, d := range peer.Drivers() {
		if d.Lineitem == nil {
			continue
		}
		t.Run(d.Name, func(t *testing.T) { peertest.Answers(t, d) })
	}
}

func TestPeersStoreRecords(t *testing.T) {
	for _, d := range peer.Drivers() {
		if d.Can&(peer.KV|peer.Pairs) == 0 {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			r := must.Get(d.Records(t.TempDir(), false))(t)
			defer r.Close()
			var keys, values [][]byte
			for i := range 300 {
				keys = append(keys, fmt.Appendf(nil, "user%05d", i))
				value := make([]byte, peer.Fields*peer.FieldBytes)
				for k := range value {
					value[k] = byte(i + k)
				}
				values = append(values, value)
			}
			must.Do(t, r.Put(keys, values))
			field := slices.Repeat([]byte("x"), peer.FieldBytes)
			copy(values[7][3*peer.FieldBytes:], field)
			must.Do(t, r.Update(keys[7], 3, field))
			for i := range keys {
				must.Equal(t, must.Get(r.Read(keys[i]))(t), values[i], i)
			}
			if got, err := r.Read([]byte("nobody")); err != nil || got != nil {
				t.Errorf("an absent record: %q, %v", got, err)
			}
			next := 250
			err := r.Scan(keys[next], 100, func(key, value []byte) {
				if next >= len(keys) || !slices.Equal(key, keys[next]) || !slices.Equal(value, values[next]) {
					t.Errorf("the scan returns %q at position %d", key, next)
				}
				next++
			})
			must.Do(t, err, "records of the scan")
			must.Equal(t, next, len(keys), "records of the scan")
		})
	}
}
