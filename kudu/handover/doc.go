// Package handover copies tables between stores and the directories of Apache Kudu tablet servers,
// with their history.
//
//	d, err := kudu.Open("/data/kudu", kudu.Options{})
//	from, err := d.Open(ctx, "metrics")
//	table, err := handover.Import(ctx, store, from, handover.ImportOptions{})
//
// Column, bloom, and delta files have the same format on both sides and are copied as they are. The
// servers are stopped. Source: tablet spec §2, §11, §18; blockmanager spec §10, §11.
package handover
