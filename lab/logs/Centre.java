import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One OpenSearch node without its distribution: Centre ADDRESS PORT FOLDER. */
public class Centre extends Node {
  Centre(Settings settings) {
    super(
        InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "lab"),
        List.of(Netty4Plugin.class),
        true);
  }

  public static void main(String[] given) throws Exception {
    Settings settings =
        Settings.builder()
            .put("path.home", given[2])
            .put("http.host", given[0])
            .put("http.port", given[1])
            .put("transport.host", "127.0.0.1")
            .put("transport.port", "0")
            .put("discovery.type", "single-node")
            .put("cluster.name", "lab")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("node.store.allow_mmap", false)
            .build();
    Centre centre = new Centre(settings);
    centre.start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(centre)));
    Thread.currentThread().join();
  }

  private static void stop(Centre centre) {
    try {
      centre.close();
    } catch (java.io.IOException error) {
      System.err.println(error);
    }
  }
}
