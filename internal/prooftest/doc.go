// Package prooftest drives a whole store against a model, for tests and for long campaigns.
//
// A history is a Script: the store's settings and a list of steps (write batches, flushes, merges,
// reads at past timestamps, reopenings, kills, power cuts). Generate makes one step after the other
// from a seed, looking at the model so that operations mostly hit; a Runner carries each out on a
// store and compares every answer with the Model, a plain map from key to versions. Steps hold all
// that they need, so a history can be run again with steps left out: Shrink does that to a failing
// one, and its String is a text that Parse takes back.
//
//	r := prooftest.Explore(prooftest.Settings{Seed: 7}, func(c prooftest.Counts) bool { return c.Steps < 1000 })
//	if r.Err != nil {
//		fmt.Println(prooftest.Shrink(r.Script, 30*time.Second))
//	}
//
// What a crash leaves comes from vfs/crashfs: a Kill keeps all that was written, a Cut all that was
// synced, Tear something between the two. Crashes ends a running history everywhere in one of these
// ways and goes on; States opens every state that a crash there may leave, Recoveries cuts the
// recovery too, Sequences goes through all short histories of one small table.
//
// Kills is another kind of history: that of a store which the real command works on, one process
// after the other, and most of these are killed.
//
// Damage harms bytes of closed stores at random; Bits goes through every bit of one, slice by
// slice, and flips those inside blocks under readers that are open, which takes microseconds where
// an open of the store takes milliseconds.
//
// The model is made from the documents of the engine, not from its code: which operation does what
// (tablet spec §12.4), what a read at a timestamp sees (§8), what survives (design §5). Comparisons
// are on cells, byte by byte, so a NaN is itself.
//
// Nothing here imports package testing. Nothing is safe for concurrent use.
package prooftest
