// Package followers checks followers (oribi.Options.Follow) against a model while their writer goes
// on.
//
// In memory, a scheduler runs the file operations of a writer one at a time, and operations of a
// follower between any two of them. Each answer must be the state of the model at some moment
// between the begin and the end of the open or refresh, and these moments never go backward. No
// open or refresh may fail; a read may be ErrTooOld.
//
//	Interleave   one way to interleave short traces; all ways together are exhaustive
//	Explore      random traces, interleaved at random
//	Harm         a full disk, power cuts, damage
//	Rush         a writer and followers at once, which nothing pauses
//	Processes    processes on a real disk, killed at any time
package followers
