// Package work contains the workloads, one file each, and the peers that run them.
//
// Most workloads are written once for all peers of package peer. The others compare parts of the
// engine with Pebble or a B-tree, or have no other peer.
package work

import (
	"context"
	"os/exec"

	"github.com/oribi-db/oribi/arrowio"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
)

const (
	storeMemory = peer.CacheBytes       // the store's default limit; Pebble's cache has the same size
	peakLimit   = storeMemory + 128<<20 // limit of resident memory
	Lineitem    = "lineitem.tbl"        // input: rows as text
	treeBatches = "tree.jsonl"          // input: write batches
	storeDir    = "store"               // in a peer's directory
	batchRows   = 1000                  // rows per write batch
)

// More is a peer that another module adds to a workload.
type More struct {
	Workload string
	Peer     harness.Peer
}

// nestedMore contains these peers without their implementations, which a nested module supplies.
func nestedMore() []More {
	self := func(env *harness.Env) (*exec.Cmd, error) { return env.Self(context.Background()) }
	more := []More{
		{"column-decode", harness.Peer{Name: "arrow-go", Module: "arrow"}},
		{"load", harness.Peer{Name: "duckdb", Module: "duckdb", Command: self}},
		{LoadParquet, harness.Peer{Name: "duckdb", Module: "duckdb", Command: self}},
	}
	for _, c := range HFileCases {
		more = append(more, More{c.Scan(), harness.Peer{Name: "hbase", Module: "hbase"}},
			More{c.Get(), harness.Peer{Name: "hbase", Module: "hbase"}})
	}
	for _, c := range CarbonReads {
		for _, name := range CarbonReaders {
			more = append(more, More{c.Workload, harness.Peer{Name: name, Module: CarbonPeer}})
		}
	}
	for _, c := range KuduScans {
		for _, p := range KuduScanners {
			more = append(more, More{c.Workload, harness.Peer{Name: p.Name, Module: KuduPeer, Store: kuduStore}})
		}
	}
	more = append(more, kuduClientPeers()...)
	return append(more, More{CarbonWrite, harness.Peer{Name: CarbonPeer, Module: CarbonPeer}},
		More{CarbonSize, harness.Peer{Name: CarbonPeer, Module: CarbonPeer}})
}

// All returns the list of workloads. A nested module passes its drivers and peers, which replace
// those without an implementation.
func All(own []peer.Driver, more ...More) []harness.Workload {
	of := func(workload string) (peers []harness.Peer) {
		for _, m := range nestedMore() {
			for _, have := range more {
				if have.Workload == m.Workload && have.Peer.Name == m.Peer.Name {
					have.Peer.Module, have.Peer.Store, have.Peer.Ours, m = m.Peer.Module, m.Peer.Store, m.Peer.Ours, have
				}
			}
			if m.Workload == workload {
				peers = append(peers, m.Peer)
			}
		}
		return peers
	}
	ds := peer.Drivers(own...)
	out := []harness.Workload{
		loadTable(ds, "load-sorted", "lineitem in key order", rowsFile, true),
		loadTable(ds, loadRandom, "lineitem in random order", shuffledFile, false),
		size(ds), sizeAtRest(), getHit(
			ds), getMiss(ds), getSpread(ds), getCold(ds), getMany(ds), rangeScan(ds), shortRange(ds)}
	out = append(out, queries(ds)...)
	out = append(out, upsert(ds), updateColumn(ds), writeAmplification(ds))
	out = append(out, exportParquet(ds, "export-parquet", arrowio.Snappy),
		exportParquet(ds, "export-parquet-zstd", arrowio.Zstd), exportArrow())
	out = append(append(out, beyond()...), loadUniform())
	out = append(out, pairsUniform()...)
	out = append(out, ycsb(ds)...)
	out = append(out, pairs(ds)...)
	out = append(out, backward())
	out = append(out, travel()...)
	out = append(out, withSyncPeers(syncOne(), ds, 1))
	for _, writers := range syncWriters {
		out = append(out, withSyncPeers(syncMany(writers), ds, writers))
	}
	out = append(append(out, commitOne()), followers()...)
	out = append(out, updatedTables()...)
	out = append(append(out, rates()...), stalls()...)
	for _, c := range HFileCases {
		out = append(out, hfileScan(c, of(c.Scan())))
	}
	for _, c := range HFileCases {
		out = append(out, hfileGet(c, of(c.Get())))
	}
	for _, c := range CarbonReads {
		out = append(out, carbonRead(c, of(c.Workload)))
	}
	out = append(out, carbonWrite(of(CarbonWrite)), carbonSize(of(CarbonSize)))
	for _, c := range KuduScans {
		out = append(out, kuduScan(c, of(c.Workload)))
	}
	out = append(out, kuduWrite(of(KuduWrite)))
	for _, c := range KuduReads {
		out = append(out, kuduRead(c, of(c.Workload)))
	}
	out = append(out, kuduSyncLag(of(KuduSyncLag)))
	out = append(append(append(append(out, ownWrites()...), indexes()...), increments()), examplePrograms()...)
	return append(out, apply(), memInsert(), write(), scanDeltas(), hotKey(), queue(), manyTables(), scanChecksums(), open(),
		openMany(), replay(), getStart(),
		load(of("load")), loadParquet(of(LoadParquet)), loadPackages(), scanCSV(), columnDecode(of("column-decode")))
}
