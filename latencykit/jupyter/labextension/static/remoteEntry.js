// Opens logs and the outputs of load generators as reports: file types, an icon, and a frame around the server's page.
// JupyterLab loads this file and asks for "./extension"; its own packages come from the scope that it shares.
(() => {
  "use strict";
  let shared = null;

  // A package of JupyterLab, in the one version that it runs.
  async function load(name) {
    const versions = shared[name];
    if (!versions) throw new Error(`JupyterLab does not share ${name}`);
    const chosen = Object.keys(versions).find((version) => versions[version].loaded) || Object.keys(versions)[0];
    return (await versions[chosen].get())();
  }

  const ICON =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">' +
    '<path class="jp-icon3" fill="none" stroke="#616161" stroke-width="2" d="M3 3v18h18M6 17h5v-3h4V9h3V4h3"/></svg>';
  const MODEL = "latencykit-file";

  async function extension() {
    const { ABCWidgetFactory, DocumentModel, DocumentWidget } = await load("@jupyterlab/docregistry");
    const { PageConfig, URLExt } = await load("@jupyterlab/coreutils");
    const { LabIcon } = await load("@jupyterlab/ui-components");
    const { Widget } = await load("@lumino/widgets");
    const icon = new LabIcon({ name: "latencykit:curve", svgstr: ICON });

    // The file itself stays on the server: it may be hundreds of megabytes.
    const models = {
      name: MODEL, contentType: "file", fileFormat: null, isDisposed: false, collaborative: false,
      dispose() {},
      createNew: (options) => new DocumentModel(options),
      preferredLanguage: () => "",
    };

    class Report extends Widget {
      constructor(context) {
        super();
        this.context = context;
        this.addClass("latencykit-report");
        this.note = document.createElement("p");
        this.note.style.cssText = "margin: 1em; color: var(--jp-ui-font-color1)";
        this.note.setAttribute("role", "status");
        this.frame = document.createElement("iframe");
        this.frame.title = `Latency report of ${context.path}`;
        this.frame.setAttribute("sandbox", "allow-scripts allow-downloads");
        this.frame.style.cssText = "border: 0; width: 100%; height: 100%; display: block";
        this.frame.addEventListener("load", () => (this.note.remove(), this.retheme()));
        this.watch = new MutationObserver(() => this.retheme());
        this.watch.observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
        this.node.append(this.note, this.frame);
        context.fileChanged.connect(this.show, this);
        context.ready.then(() => this.show());
      }

      show() {
        if (this.isDisposed) return;
        const settings = PageConfig.getBaseUrl(), path = encodeURIComponent(this.context.localPath);
        this.note.textContent = `Reading ${this.context.localPath} …`;
        this.node.prepend(this.note);
        this.frame.src = `${URLExt.join(settings, "latencykit", "report")}?path=${path}&theme=${this.theme()}`;
      }

      // A frame sees the system's theme only.
      theme() {
        return document.body.dataset.jpThemeLight === "false" ? "dark" : "light";
      }

      retheme() {
        this.frame.contentWindow?.postMessage({ theme: this.theme() }, "*");
      }

      dispose() {
        this.watch.disconnect();
        this.context.fileChanged.disconnect(this.show, this);
        super.dispose();
      }
    }

    class Factory extends ABCWidgetFactory {
      createNewWidget(context) {
        const widget = new DocumentWidget({ content: new Report(context), context });
        widget.title.icon = icon;
        return widget;
      }
    }

    return {
      id: "latencykit:report",
      description: "Opens latency logs as interactive reports.",
      autoStart: true,
      activate(app) {
        const types = [["hlog", "HdrHistogram log", [".hlog", ".hlog.gz", ".hlog.zst"]], ["hgrm", "HdrHistogram percentiles", [".hgrm"]]];
        for (const [name, displayName, extensions] of types)
          app.docRegistry.addFileType({ name, displayName, extensions, mimeTypes: ["text/plain"], contentType: "file", fileFormat: "text", icon });
        app.docRegistry.addModelFactory(models);
        const names = types.map(([name]) => name);
        app.docRegistry.addWidgetFactory(
          new Factory({ name: "Latency report", modelName: MODEL, fileTypes: [...names, "*"], defaultFor: names, readOnly: true }),
        );
      },
    };
  }

  (window._JUPYTERLAB ||= {}).latencykit = {
    init: async (scope) => void (shared = scope),
    get: async (name) => {
      if (name !== "./extension") throw new Error(`no module ${name}`);
      const plugin = await extension();
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
