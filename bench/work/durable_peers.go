package work

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
)

// withSyncPeers adds the peers in addition to Pebble. Each commit of one row of commitValue bytes
// is durable when it returns.
func withSyncPeers(w harness.Workload, all []peer.Driver, writers int) harness.Workload {
	can := peer.KV
	if writers > 1 {
		can |= peer.Shared
	}
	for _, d := range drivers(all, can) {
		if d.Ours || d.Name == "pebble" {
			continue
		}
		w.Peers = append(w.Peers, syncPeer(d, writers))
	}
	return w
}

// syncPeer commits rows of commitValue bytes, each durable when its commit returns.
func syncPeer(d peer.Driver, writers int) harness.Peer {
	return harness.Peer{Name: d.Name, Ours: d.Ours, Module: d.Module,
		Measure: func(env *harness.Env) (m harness.Measurement, err error) {
			r, err := openRecords(env, &d, true)
			if err != nil {
				return m, err
			}
			value := make([]byte, commitValue)
			m, err = commits(env, writers, syncCount(env, writers), func(_, k int) error {
				return r.Put([][]byte{binary.BigEndian.AppendUint64(nil, uint64(k))}, [][]byte{value})
			})
			return m, closeAll(err, r)
		}}
}
