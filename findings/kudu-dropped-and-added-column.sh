#!/usr/bin/env bash
# Apache Kudu loses what is written to a column that was dropped and added by one alteration.
#
# Versions: kudu-binary and kudu-client 1.18.1 of Maven Central, a master and a tablet server on the
# loopback interface.
#
# A table has a STRING column, which is dropped and added anew, under its name, by one AlterTable and by
# two. A row that is then upserted with a value has NULL in the first case.
#
# Output seen:
#
#	one alteration: NULL
#	two alterations: new
#
# Needs Linux on x86-64, a JDK, Maven, and Python 3. Exits with 1 if Kudu behaves otherwise.
set -euo pipefail
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
version=1.18.1
cat > "$dir/pom.xml" <<XML
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>column</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kudu</groupId><artifactId>kudu-client</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
XML
(cd "$dir" && mvn -q -B dependency:copy -Dartifact="org.apache.kudu:kudu-binary:$version:jar:linux-x86_64" -DoutputDirectory="$dir" &&
	mvn -q -B dependency:copy-dependencies -DoutputDirectory="$dir/lib") >&2
python3 -m zipfile -e "$dir/kudu-binary-$version-linux-x86_64.jar" "$dir"
home=$dir/kudu-binary-$version-linux-x86_64
chmod +x "$home"/bin/*

master=127.0.0.1:$((20000 + RANDOM % 10000)) server=127.0.0.1:$((30000 + RANDOM % 10000))
start() { # role, then flags
	LD_LIBRARY_PATH=$home/lib SASL_PATH=$home/lib/sasl2 "$home/bin/kudu" "$1" run --unlock_unsafe_flags --unlock_experimental_flags \
		--time_source=system_unsync --rpc_authentication=disabled --rpc_encryption=disabled --webserver_enabled=false \
		--fs_wal_dir="$dir/$1" --log_dir="$dir" "${@:2}" > "$dir/$1.log" 2>&1 &
	pids+=($!)
}
start master --rpc_bind_addresses="$master" --default_num_replicas=1
start tserver --rpc_bind_addresses="$server" --tserver_master_addrs="$master"

cat > "$dir/Finding.java" <<'JAVA'
import java.util.*;
import org.apache.kudu.*;
import org.apache.kudu.client.*;

public final class Finding {
  static KuduClient client;

  public static void main(String[] args) throws Exception {
    client = new KuduClient.KuduClientBuilder(args[0]).build();
    for (int attempt = 0; client.listTabletServers().getTabletServersCount() == 0; attempt++) {
      if (attempt == 60) throw new IllegalStateException("no tablet server");
      Thread.sleep(1000);
    }
    System.out.println("one alteration: " + written("one", true));
    System.out.println("two alterations: " + written("two", false));
    client.shutdown();
  }

  static String written(String name, boolean together) throws Exception {
    ColumnSchema k = new ColumnSchema.ColumnSchemaBuilder("k", Type.INT32).key(true).build();
    ColumnSchema v = new ColumnSchema.ColumnSchemaBuilder("v", Type.STRING).nullable(true).build();
    client.createTable(name, new Schema(Arrays.asList(k, v)),
        new CreateTableOptions().setRangePartitionColumns(Collections.emptyList()).setNumReplicas(1));
    AlterTableOptions drop = new AlterTableOptions().dropColumn("v");
    if (together) {
      client.alterTable(name, drop.addColumn(v));
    } else {
      client.alterTable(name, drop);
      client.alterTable(name, new AlterTableOptions().addColumn(v));
    }
    KuduTable table = client.openTable(name);
    KuduSession session = client.newSession();
    Upsert upsert = table.newUpsert();
    upsert.getRow().addInt("k", 1);
    upsert.getRow().addString("v", "new");
    session.apply(upsert);
    session.close();
    String found = "no row";
    for (RowResult row : client.newScannerBuilder(table).build()) found = row.isNull("v") ? "NULL" : row.getString("v");
    return found;
  }
}
JAVA
javac -cp "$dir/lib/*" -d "$dir" "$dir/Finding.java"
java -cp "$dir/lib/*:$dir" Finding "$master" | tee "$dir/output"
diff "$dir/output" - <<'OUT'
one alteration: NULL
two alterations: new
OUT
