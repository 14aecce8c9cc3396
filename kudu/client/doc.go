// Package client is a client of a running Apache Kudu cluster, version 1.18.
//
//	c, err := client.Connect(ctx, []string{"master1:7051", "master2:7051", "master3:7051"}, nil)
//	t, err := c.OpenTable(ctx, "metrics")
//
// A Session writes rows, from cells or from the columns of a batch, and a Scan reads them in columns:
//
//	s, err := t.NewSession(ctx, nil)
//	err = s.ApplyBatch(ctx, client.Upsert, rows)
//	done, err := s.Flush(ctx) // done.RowErrors are the rows that were refused
//	scan, err := t.Scan(ctx, client.ScanOptions{At: done.Timestamp + 1})
//
// Cells are the bytes of vectors of package batch. Each write is carried out once, however often it is
// sent. Scans of the same time have the same rows; a scan with From has the rows that were changed.
//
// A Client finds the leading master and the tablets' leaders, follows them when they change, and
// repeats calls that a server was too busy for or that were lost. A call of this package ends at the
// deadline of its context, or after Options.Timeout without one; its error then has the last
// server's answer. All errors name the server, the call, and the table or tablet.
//
// Servers on other hosts must encrypt connections and have certificates that Options.RootCAs sign,
// unless Options.Insecure allows any. Clients are known by their user's name or by a JWT; clusters
// that demand Kerberos are not supported.
//
// A Client and its Tables are safe for concurrent use; a Session and a Scan are not. Batches of scans
// are valid until the next one; no other value refers to memory of the client.
//
// Source: kudurpc spec §4, 7–13, and 16.
package client
