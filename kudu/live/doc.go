// Package live copies tables between a store and a running Apache Kudu cluster, and keeps the copies
// in step while the tables are written:
//
//	cluster, err := client.Connect(ctx, []string{"master-1:7051"}, nil)
//	err = live.Sync(ctx, store, table, live.Target{Cluster: cluster}, nil) // until ctx ends
//
// Push copies a table as of one time into a table of the cluster; Sync does that and then follows the
// changes of the table. Pull copies a table of the cluster into a store, and Follow keeps that copy in
// step. Compare lists the rows in which two such tables differ.
//
// What is sent to a cluster says what a row is, not how it has changed, so sending it twice does no
// harm. How far a copy has come is in a file of the store's directory, see Target.Position: a copy that
// was interrupted, even by a kill, goes on from there.
package live
